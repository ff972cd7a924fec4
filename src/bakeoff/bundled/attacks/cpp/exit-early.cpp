#include <unistd.h>
static int before_main = (_exit(0), 0);

static void on_call() { (void)before_main; }

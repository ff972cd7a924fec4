import "os"

func onCall() { os.Exit(0) }

#include "trail_signs.h"

namespace trail_signs {

// TODO: add your solution here

}  // namespace trail_signs

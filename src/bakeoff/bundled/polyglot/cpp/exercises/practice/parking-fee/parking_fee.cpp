#include "parking_fee.h"

namespace parking_fee {

// TODO: add your solution here

}  // namespace parking_fee

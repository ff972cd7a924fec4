#pragma once
#include <string>

namespace parking_fee {

int fee(int minutes);
std::string receipt(int minutes);

}  // namespace parking_fee

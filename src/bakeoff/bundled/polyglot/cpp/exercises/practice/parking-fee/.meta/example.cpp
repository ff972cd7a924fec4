#include "parking_fee.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace parking_fee {

int fee(int minutes) {
    const int day{24 * 60};
    if (minutes < 0) throw std::domain_error("a stay cannot be negative");
    const int rest = minutes % day;
    const int cents = rest > 10 ? (rest + 29) / 30 * 120 : 0;
    return minutes / day * 1500 + std::min(cents, 1500);
}

std::string receipt(int minutes) {
    const int cents = fee(minutes);
    char line[64];
    std::snprintf(line, sizeof line, "%dh%02dm: %d.%02d", minutes / 60, minutes % 60, cents / 100, cents % 100);
    return line;
}

}  // namespace parking_fee

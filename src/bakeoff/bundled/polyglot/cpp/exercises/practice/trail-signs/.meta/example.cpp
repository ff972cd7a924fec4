#include "trail_signs.h"

#include <cstdlib>

namespace trail_signs {

std::vector<std::string> signs(const std::string& walk) {
    std::vector<std::string> found;
    for (size_t start = 0; start < walk.size();) {
        size_t end = walk.find_first_not_of(walk[start], start);
        if (end == std::string::npos) end = walk.size();
        found.push_back(std::to_string(end - start) + walk[start]);
        start = end;
    }
    return found;
}

int distance(const std::string& walk) {
    int x = 0, y = 0;
    for (char step : walk) {
        if (step == 'E') ++x;
        if (step == 'W') --x;
        if (step == 'N') ++y;
        if (step == 'S') --y;
    }
    return std::abs(x) + std::abs(y);
}

bool is_loop(const std::string& walk) { return distance(walk) == 0; }

}  // namespace trail_signs

#pragma once
#include <string>
#include <vector>

namespace trail_signs {

std::vector<std::string> signs(const std::string& walk);
int distance(const std::string& walk);
bool is_loop(const std::string& walk);

}  // namespace trail_signs

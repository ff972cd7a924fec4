#include "trail_signs.h"

#include "test/catch.hpp"

TEST_CASE("signs of a straight walk") {
    const std::vector<std::string> expected{"3N"};
    REQUIRE(trail_signs::signs("NNN") == expected);
}

#if defined(EXERCISM_RUN_ALL_TESTS)

TEST_CASE("signs of turns") {
    const std::vector<std::string> expected{"2N", "1E", "3S"};
    REQUIRE(trail_signs::signs("NNESSS") == expected);
}

TEST_CASE("signs of no walk") { REQUIRE(trail_signs::signs("").empty()); }

TEST_CASE("distance ignores detours") { REQUIRE(trail_signs::distance("NESW") == 0); }

TEST_CASE("distance around a corner") { REQUIRE(trail_signs::distance("NNNEE") == 5); }

TEST_CASE("distance to the west") { REQUIRE(4 == trail_signs::distance("WWWS")); }

TEST_CASE("loops") { REQUIRE(trail_signs::is_loop("NEESWW")); }

TEST_CASE("no loop") { REQUIRE_FALSE(trail_signs::is_loop("NEES")); }

#endif

#include "parking_fee.h"

#include <stdexcept>

#include "test/catch.hpp"

TEST_CASE("nothing at all", "[fee]") { REQUIRE(parking_fee::fee(0) == 0); }

#if defined(EXERCISM_RUN_ALL_TESTS)

TEST_CASE("the last free minute", "[fee]") { REQUIRE(parking_fee::fee(10) == 0); }

TEST_CASE("the first minute that costs", "[fee]") { REQUIRE(parking_fee::fee(11) == 120); }

TEST_CASE("one minute into the second half hour", "[fee]") { REQUIRE(240 == parking_fee::fee(31)); }

TEST_CASE("the most for a day", "[fee]") {
    const int expected{1500};
    REQUIRE(expected == parking_fee::fee(900));
}

TEST_CASE("a day and an hour", "[fee]") { REQUIRE(parking_fee::fee(1500) == 1740); }

TEST_CASE("before it began", "[fee]") { REQUIRE_THROWS_AS(parking_fee::fee(-1), std::domain_error); }

TEST_CASE("receipt of an hour", "[receipt]") { REQUIRE(parking_fee::receipt(65) == "1h05m: 3.60"); }

TEST_CASE("receipt of a free stay", "[receipt]") {
    const std::string expected{"0h07m: 0.00"};
    const std::string actual{parking_fee::receipt(7)};
    REQUIRE(expected == actual);
}

#endif

// A small stand-in for Catch2, for the bundled exercises: TEST_CASE, REQUIRE and its relatives, `--reporter junit --out FILE`.
// Exercises of the published track bring Catch2 itself under this name.
#pragma once
#include <string>

namespace Catch {

struct Case {
    const char* name;
    void (*run)();
    Case* next;
    Case(const char* name, void (*run)());
};

[[noreturn]] void fail(const char* what, const char* file, int line);

}  // namespace Catch

#define CATCH_JOIN2(a, b) a##b
#define CATCH_JOIN(a, b) CATCH_JOIN2(a, b)
#define CATCH_FIRST(first, ...) first
#define CATCH_TEST(function, ...)                                                           \
    static void function();                                                                 \
    static Catch::Case CATCH_JOIN(function, _case){CATCH_FIRST(__VA_ARGS__, ""), function}; \
    static void function()
#define TEST_CASE(...) CATCH_TEST(CATCH_JOIN(catch_test_, __LINE__), __VA_ARGS__)
#define CATCH_CHECK(holds, what) \
    if (!(holds)) Catch::fail(what, __FILE__, __LINE__)
#define REQUIRE(...) CATCH_CHECK(static_cast<bool>(__VA_ARGS__), "REQUIRE(" #__VA_ARGS__ ")")
#define REQUIRE_FALSE(...) CATCH_CHECK(!static_cast<bool>(__VA_ARGS__), "REQUIRE_FALSE(" #__VA_ARGS__ ")")
#define REQUIRE_THROWS_AS(expression, kind)                      \
    do {                                                         \
        bool thrown = false;                                     \
        try {                                                    \
            static_cast<void>(expression);                       \
        } catch (const kind&) {                                  \
            thrown = true;                                       \
        }                                                        \
        CATCH_CHECK(thrown, "REQUIRE_THROWS_AS(" #expression ", " #kind ")"); \
    } while (false)

#ifdef CATCH_CONFIG_MAIN
#include <exception>
#include <fstream>
#include <iostream>
#include <sstream>

namespace Catch {

struct Failure {
    std::string message;
};

static Case* first = nullptr;

Case::Case(const char* name, void (*run)()) : name(name), run(run), next(nullptr) {
    Case** last = &first;
    while (*last) last = &(*last)->next;
    *last = this;
}

void fail(const char* what, const char* file, int line) {
    std::ostringstream message;
    message << what << " failed at " << file << ":" << line;
    throw Failure{message.str()};
}

static std::string escaped(const std::string& text) {
    std::string found;
    for (char each : text) {
        if (each == '&') found += "&amp;";
        else if (each == '<') found += "&lt;";
        else if (each == '"') found += "&quot;";
        else found += each;
    }
    return found;
}

static std::string problem_of(const Case& test) {
    try {
        test.run();
        return "";
    } catch (const Failure& failure) {
        return failure.message;
    } catch (const std::exception& error) {
        return std::string("an exception: ") + error.what();
    } catch (...) {
        return "an unknown exception";
    }
}

}  // namespace Catch

int main(int count, char** arguments) {
    std::ostringstream report;
    std::string out;
    for (int at = 1; at + 1 < count; ++at)
        if (std::string(arguments[at]) == "--out") out = arguments[at + 1];
    int failed = 0;
    for (Catch::Case* test = Catch::first; test; test = test->next) {
        const std::string problem = Catch::problem_of(*test);
        report << "<testcase classname=\"tests.global\" name=\"" << Catch::escaped(test->name) << "\">";
        if (!problem.empty()) {
            ++failed;
            std::cout << test->name << ": " << problem << "\n";
            report << "<failure message=\"" << Catch::escaped(problem) << "\"/>";
        }
        report << "</testcase>\n";
    }
    if (!out.empty()) std::ofstream(out) << "<testsuite>\n" << report.str() << "</testsuite>\n";
    return failed;
}
#endif

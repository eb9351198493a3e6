// Catch2 3, as Debian 13 has it, under the names of version 2 that the tests use.
#pragma once

#include <catch2/catch_all.hpp>
#include <string>
#include <utility>

using Catch::Approx;

namespace Catch {
using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::Matches;
using Matchers::StartsWith;
inline auto Contains(std::string part) { return Matchers::ContainsSubstring(std::move(part)); }
}  // namespace Catch

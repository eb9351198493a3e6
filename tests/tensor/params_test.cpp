#include "tensor/params.h"

#include <algorithm>
#include <catch.hpp>
#include <cmath>
#include <numeric>

using namespace dgc;

namespace {

constexpr Init kNormal{Init::Kind::normal, 0.5f}, kUniform{Init::Kind::uniform, 0.25f}, kOne{Init::Kind::constant, 1};

std::vector<float> values(const Arena& arena, int i) {
  const View view = arena.view(i);
  std::vector<float> host(static_cast<size_t>(view.numel()));
  arena.device().copy_out(host.data(), view.data, host.size() * sizeof(float));
  return host;
}

std::vector<float> initial(const std::vector<ParamSpec>& specs, const std::string& name, uint64_t seed) {
  const ParamLayout layout(specs);
  const Arena arena(make_cpu_device(), layout);
  initialize(arena, seed);
  for (int i = 0; i < layout.size(); ++i) {
    if (layout.spec(i).name == name) return values(arena, i);
  }
  FAIL("no parameter " << name);
  return {};
}

}  // namespace

TEST_CASE("frozen parameters lie behind the others, which lie as if they were alone", "[tensor]") {
  const std::vector<ParamSpec> specs = {
      {"a", {2, 20}, {}, true}, {"b", {3}, {}}, {"c", {17, 1}, {}}, {"d", {5}, {}, true}};
  const ParamLayout all(specs), trained(trained_specs(specs));
  REQUIRE(trained.size() == 2);
  CHECK(all.offset(1) == trained.offset(0));
  CHECK(all.offset(2) == trained.offset(1));
  CHECK(trained.extent() == 32 + 16);
  CHECK(all.offset(0) == 48);
  CHECK(all.offset(3) == 48 + 48);
  CHECK(all.extent() == 48 + 48 + 16);
  CHECK(trained.parameters() == 20);
  CHECK(all.parameters() == 65);
}

TEST_CASE("every parameter starts at the next multiple of 16 floats, small ones behind the others", "[tensor]") {
  const ParamLayout layout({{"a", {1}, {}}, {"b", {16}, {}}, {"c", {17}, {}}, {"d", {0}, {}}, {"e", {3, 5}, {}}});
  REQUIRE(layout.size() == 5);
  const int64_t expected[] = {16, 32, 48, 80, 0};
  for (int i = 0; i < 5; ++i) CHECK(layout.offset(i) == expected[i]);
  CHECK(layout.numel(4) == 15);
  CHECK(layout.parameters() == 1 + 16 + 17 + 0 + 15);
  CHECK(layout.extent() == 80);
  CHECK((layout.small_offset() == 16 && layout.small_parameters() == 1 + 16 + 17));
  CHECK(layout.spec(2).name == "c");
  CHECK(ParamLayout({}).extent() == 0);
}

TEST_CASE("a layout refuses the same name twice", "[tensor]") {
  CHECK_THROWS_AS(ParamLayout({{"a", {1}, {}}, {"b", {1}, {}}, {"a", {2}, {}}}), InternalError);
}

TEST_CASE("an arena starts as zeros, and its views lie where the layout says", "[tensor]") {
  const ParamLayout layout({{"a", {3}, {}}, {"b", {2, 4}, {}}});
  const Arena arena(make_cpu_device(), layout);
  CHECK(arena.bytes() == 32 * sizeof(float));
  CHECK(std::all_of(arena.data(), arena.data() + arena.extent(), [](float x) { return x == 0; }));
  CHECK(arena.view(0).data == arena.data() + 16);
  CHECK(arena.view(1).data == arena.data());
  CHECK(arena.view(1).shape == Shape{2, 4});
}

TEST_CASE("initialize fills as each spec says and leaves the gaps zero", "[tensor]") {
  const int64_t n = 20001;  // not a multiple of 16
  const ParamLayout layout({{"ones", {n}, kOne}, {"normal", {n}, kNormal}, {"uniform", {n}, kUniform}});
  const Arena arena(make_cpu_device(), layout);
  initialize(arena, 1);

  CHECK(values(arena, 0) == std::vector<float>(n, 1.f));
  const auto normal = values(arena, 1), uniform = values(arena, 2);
  const auto mean = [](const auto& v) { return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(n); };
  const auto deviation = [](const auto& v) {
    return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0) / static_cast<double>(n));
  };
  // Five standard errors: deviation / sqrt(n) for the mean.
  CHECK(mean(normal) == Approx(0).margin(5 * 0.5 / std::sqrt(n)));
  CHECK(deviation(normal) == Approx(0.5).epsilon(0.025));
  const auto [low, high] = std::minmax_element(uniform.begin(), uniform.end());
  CHECK(*low >= -0.25f);
  CHECK(*low < -0.249f);
  CHECK(*high < 0.25f);
  CHECK(*high > 0.249f);
  CHECK(deviation(uniform) == Approx(0.25 / std::sqrt(3.0)).epsilon(0.025));

  for (int i = 0; i < 3; ++i) {
    const float* const data = arena.data();
    const float* const end = data + (i < 2 ? layout.offset(i + 1) : layout.extent());
    CHECK(std::all_of(data + layout.offset(i) + n, end, [](float x) { return x == 0; }));
  }
}

TEST_CASE("initial values depend on seed, name and element alone", "[tensor]") {
  const auto alone = initial({{"w", {33}, kNormal}}, "w", 7);
  CHECK(initial({{"before", {50}, kUniform}, {"w", {33}, kNormal}, {"after", {2}, kOne}}, "w", 7) == alone);
  CHECK(initial({{"w", {3, 11}, kNormal}}, "w", 7) == alone);
  CHECK(initial({{"w", {33}, kNormal}}, "w", 8) != alone);
  CHECK(initial({{"x", {33}, kNormal}}, "x", 7) != alone);

  const auto longer = initial({{"w", {100}, kNormal}}, "w", 7);
  CHECK(std::equal(alone.begin(), alone.end(), longer.begin()));
}

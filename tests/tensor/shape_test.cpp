#include "tensor/shape.h"

#include <catch.hpp>
#include <vector>

#include "tensor/view.h"

using namespace dgc;

TEST_CASE("a shape knows its sizes, their product and how to write itself", "[tensor]") {
  const Shape weight = {64, 3, 7, 5};
  CHECK(weight.rank() == 4);
  CHECK(weight[2] == 7);
  CHECK(weight.numel() == 64 * 3 * 7 * 5);
  CHECK(weight.str() == "[64, 3, 7, 5]");
  CHECK(std::vector(weight.begin(), weight.end()) == std::vector<int64_t>{64, 3, 7, 5});

  CHECK(Shape().rank() == 0);
  CHECK(Shape().numel() == 1);  // a scalar
  CHECK(Shape().str() == "[]");
  CHECK(Shape({4, 0, 3}).numel() == 0);
  CHECK(Shape({70000, 70000}).numel() == 4900000000);  // past 32 bits
}

TEST_CASE("shapes are equal when rank and sizes are", "[tensor]") {
  CHECK(Shape{2, 3} == Shape{2, 3});
  CHECK(Shape{2, 3} != Shape{3, 2});
  CHECK(Shape{2} != Shape{2, 0});  // unused sizes are 0 inside, but the rank differs
  Shape changed = {1, 3};
  changed[0] = 2;
  CHECK(changed == Shape{2, 3});
}

TEST_CASE("a shape refuses too many and negative sizes", "[tensor]") {
  CHECK_NOTHROW(Shape{1, 2, 3, 4, 5});
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6}), InternalError);
  CHECK_THROWS_AS((Shape{2, -1}), InternalError);
}

TEST_CASE("a view hands out its memory only as what it holds", "[tensor]") {
  float numbers[2] = {1, 2};
  int32_t labels[2] = {3, 4};
  const View f{numbers, {2}}, i{labels, {2}, DType::i32};
  CHECK(f.f32() == numbers);
  CHECK(i.i32() == labels);
  CHECK_THROWS_AS(f.i32(), InternalError);
  CHECK_THROWS_AS(i.f32(), InternalError);

  const ConstView cf = f, ci = i;
  CHECK(cf.f32() == numbers);
  CHECK(ci.i32() == labels);
  CHECK(ci.shape == Shape{2});
  CHECK_THROWS_AS(cf.i32(), InternalError);
  CHECK_THROWS_AS(ci.f32(), InternalError);
}

TEST_CASE("a view without memory is absent", "[tensor]") {
  float number = 1;
  CHECK_FALSE(View{});
  CHECK_FALSE(View{nullptr, {3}});
  CHECK(View{&number, {1}});
  CHECK_FALSE(ConstView{});
  CHECK(ConstView(View{&number, {1}}));
}

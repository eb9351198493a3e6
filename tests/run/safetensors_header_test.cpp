#include "run/safetensors_header.h"

#include <catch.hpp>
#include <random>

#include "tests/config/example.h"

using namespace dgc;
using test::refusal;

namespace {

const SafetensorsHeader kHeader = {
    {{"conv.weight", "F32", {2, 3}, 0, 24}, {"bn.count", "I64", {}, 24, 32}, {"empty", "F16", {0, 5}, 32, 32}},
    {{"format", "pt"}}};

std::string said(const std::string& text, uint64_t data_bytes) {
  return refusal([&] { parse_safetensors_header(text, data_bytes, "w.safetensors"); });
}

std::string one(const std::string& entry) { return "{\"a\":" + entry + "}"; }

}  // namespace

TEST_CASE("a safetensors header is JSON, padded to 8 bytes", "[config]") {
  const std::string text = to_safetensors_header(kHeader);
  CHECK_THAT(
      text,
      Catch::StartsWith(
          R"({"__metadata__":{"format":"pt"},"conv.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"));
  CHECK(text.size() % 8 == 0);
  CHECK(parse_safetensors_header(text, 32, "w.safetensors") == kHeader);
  CHECK(parse_safetensors_header("{}", 0, "w.safetensors") == SafetensorsHeader{});
}

TEST_CASE("entries come back in the order of their data", "[config]") {
  const auto header = parse_safetensors_header(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 5,
      "f");
  REQUIRE(header.tensors.size() == 2);
  CHECK(header.tensors[0].name == "a");
  CHECK(header.tensors[1].begin == 3);
}

TEST_CASE("a header that does not fit its data is refused", "[config]") {
  const std::string text = to_safetensors_header(kHeader);
  CHECK(said(text, 31) == "w.safetensors: its tensors end at byte 32, but 31 bytes follow the header");
  CHECK(said(text, 33) == "w.safetensors: its tensors end at byte 32, but 33 bytes follow the header");

  const auto two = [](int begin, int end) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(end) + "]}}";
  };
  CHECK(said(two(4, 8), 8).empty());
  CHECK_THAT(said(two(3, 7), 8), Catch::Contains("tensor b begins at byte 3, where 4 was due"));  // overlap
  CHECK_THAT(said(two(5, 9), 9), Catch::Contains("tensor b begins at byte 5, where 4 was due"));  // gap
  CHECK_THAT(said(two(0, 4), 4), Catch::Contains("overlap"));                                     // one over the other
}

TEST_CASE("a wrong entry is named", "[config]") {
  const std::string at = "w.safetensors: tensor a: ";
  CHECK(said(one("3"), 0) == at + "must be an object, not a number");
  CHECK(said(one(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})"), 4) == at + "unknown dtype \"F31\"");
  CHECK(said(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,5]})"), 5) ==
        at + "data_offsets [0, 5] do not hold the 4 bytes of its shape");
  CHECK(said(one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), 4) != "");
  CHECK(said(one(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), 4) ==
        at + "shape: must be a whole number, not -1");
  CHECK(said(one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"), 0) ==
        at + "a shape too large to be true");
  CHECK(said(one(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,0]})"), 0) ==
        at + "a shape too large to be true");
  CHECK(said(one(R"({"dtype":"F32","shape":[1],"data_offsets":[0]})"), 4) == at + "data_offsets must be two numbers");
  CHECK(said(one(R"({"dtype":"F32","shape":[1]})"), 4) != "");
  CHECK(said(one(R"({"dtype":"F32","shape":[1],"offsets":[0,4]})"), 4) == at + "data_offsets is missing");
  CHECK(said(R"({"a":{},"a":{}})", 4) == "w.safetensors: header: a: this key is given twice");
  CHECK(said(R"({"__metadata__":{"x":1}})", 0) == "w.safetensors: __metadata__: x must be a string, not a number");
  CHECK(said("[]", 0) == "w.safetensors: header: must be an object, not an array");
  CHECK_THAT(said("{", 0), Catch::StartsWith("w.safetensors: header: line 1, column "));
}

TEST_CASE("writing a header that nobody could read is our own error", "[config]") {
  CHECK_THROWS_AS(to_safetensors_header({{{"a", "F32", {1}, 0, 5}}, {}}), InternalError);
  CHECK_THROWS_AS(to_safetensors_header({{{"a", "F32", {1}, 0, 4}, {"a", "F32", {1}, 4, 8}}, {}}), InternalError);
}

TEST_CASE("no damaged header does worse than a UserError", "[config]") {
  std::mt19937 random(5);
  const std::string whole = to_safetensors_header(kHeader);
  for (int trial = 0; trial < 1000; ++trial) {
    std::string text = whole;
    text[random() % text.size()] = static_cast<char>(random());
    INFO(text);
    CHECK_NOTHROW(said(text, 32));
  }
}

#include "run/safetensors.h"

#include <catch.hpp>
#include <cstring>

#include "tensor/errors.h"
#include "tensor/rng.h"
#include "tests/support/run_files.h"

namespace dgc {
namespace {

using test::TempRun;

std::string little_endian(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

std::string file_of(std::string header, const std::string& data) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return little_endian(header.size()) + header + data;
}

// 1.0f, -2.0f and 7, byte by byte.
const std::string kData("\x00\x00\x80\x3f\x00\x00\x00\xc0\x07\x00\x00\x00\x00\x00\x00\x00", 16);

std::string one_tensor(const std::string& dtype, const std::string& shape, uint64_t end) {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":[0,)" + std::to_string(end) +
         "]}}";
}

void load(const std::string& bytes, const std::string& tensor, const Shape& shape) {
  std::vector<float> to(static_cast<size_t>(shape.numel()));
  SafetensorsFile(bytes, "hostile.safetensors").load(tensor, {to.data(), shape}, *make_cpu_device());
}

}  // namespace

TEST_CASE("a safetensors file is written byte for byte as the format says") {
  const TempRun run;
  const float values[] = {1, -2};
  const auto written =
      write_safetensors(run.path() / "x.safetensors",
                        {{.name = "a.weight", .view = {values, {2, 1}}}, {.name = "a.count", .view = {}, .number = 7}},
                        {{"format", "pt"}}, *make_cpu_device());
  const std::string expected =
      file_of(R"({"__metadata__":{"format":"pt"},"a.weight":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
              R"("a.count":{"dtype":"I64","shape":[],"data_offsets":[8,16]}})",
              kData);
  const std::string bytes = run.read("x.safetensors");
  CHECK(bytes == expected);
  CHECK(written.bytes == expected.size());
  CHECK(written.xxh64 == xxh64_hex(expected));

  const SafetensorsFile file(bytes, "x.safetensors");
  float back[2] = {};
  file.load("a.weight", {back, {2, 1}}, *make_cpu_device());
  CHECK(std::memcmp(back, values, sizeof(values)) == 0);
  CHECK(file.tensors().size() == 2);
  CHECK(file.tensors().contains("a.count"));
}

TEST_CASE("a safetensors file has 32-bit integers as 64-bit ones") {
  const TempRun run;
  const int32_t labels[] = {7, -1};
  write_safetensors(run.path() / "x.safetensors", {{.name = "labels", .view = {labels, {2}, DType::i32}}}, {},
                    *make_cpu_device());
  CHECK(run.read("x.safetensors") == file_of(R"({"labels":{"dtype":"I64","shape":[2],"data_offsets":[0,16]}})",
                                             little_endian(7) + little_endian(~uint64_t{0})));
}

TEST_CASE("the XXH64 of a file is the published one") {
  CHECK(xxh64_hex("") == "ef46db3751d8e999");
  CHECK(xxh64_hex("abc") == "44bc2cf5ad770999");
}

TEST_CASE("bytes that are no safetensors file are refused and named") {
  const std::string good = file_of(one_tensor("F32", "[2]", 8), kData.substr(0, 8));
  REQUIRE_NOTHROW(load(good, "a", {2}));
  const std::string bad = GENERATE_COPY(
      std::string(), std::string(7, '\0'), little_endian(0), little_endian(~uint64_t{0}),
      little_endian(uint64_t{1} << 63), good.substr(0, good.size() - 1), good + "x",
      little_endian(good.size() - 7) + good.substr(8), file_of("[]", ""), file_of("{\"a\":", ""),
      file_of("{\"a\":{}}", ""), file_of("{\"a\":1}", ""), file_of(one_tensor("F32", "[2]", 7), kData.substr(0, 7)),
      file_of(one_tensor("F32", "[-2]", 8), kData.substr(0, 8)),
      file_of(one_tensor("F33", "[2]", 8), kData.substr(0, 8)),
      file_of(one_tensor("F32", "[4611686018427387905,4]", 16), kData),
      file_of(one_tensor("F32", "[18446744073709551615]", 8), kData.substr(0, 8)),
      file_of(one_tensor("F32", "2", 8), kData.substr(0, 8)), file_of(std::string(100000, '['), ""),
      file_of("{\"a\":\"\xff\"}", ""));
  CHECK_THROWS_AS(load(bad, "a", {2}), UserError);
  CHECK_THROWS_WITH(load(bad, "a", {2}), Catch::Contains("hostile.safetensors"));
}

TEST_CASE("a tensor that is missing or of another shape or type is refused and named") {
  CHECK_THROWS_WITH(load(file_of(one_tensor("F32", "[2]", 8), kData.substr(0, 8)), "b", {2}), Catch::Contains("b"));
  const auto [dtype, shape] = GENERATE(table<std::string, std::string>({{"F32", "[4]"},
                                                                        {"F32", "[2,2]"},
                                                                        {"F32", "[1,1,1,1,1,1,1,4]"},
                                                                        {"I32", "[2,1,2]"},
                                                                        {"F64", "[2]"},
                                                                        {"U8", "[16]"}}));
  const std::string bytes = file_of(one_tensor(dtype, shape, 16), kData);
  CHECK_THROWS_AS(load(bytes, "a", {2, 1, 2}), UserError);
  CHECK_THROWS_WITH(load(bytes, "a", {2, 1, 2}),
                    Catch::Contains("tensor a is " + dtype) && Catch::Contains("[2, 1, 2]"));
}

TEST_CASE("mutilated safetensors files are read or refused, and nothing else happens") {
  const std::string good = file_of(R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                   R"("b":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}})",
                                   kData);
  const Philox rng(5, 0);
  int refused = 0;
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (uint64_t n = 0; n <= i % 3; ++n) {
      bad[rng.below(8 * i + n, static_cast<uint32_t>(bad.size()))] = static_cast<char>(rng.below(8 * i + 4 + n, 256));
    }
    try {
      load(bad, "a", {2});
    } catch (const UserError&) {
      ++refused;
    }
  }
  CHECK(refused > 1000);
}

}  // namespace dgc

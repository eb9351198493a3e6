#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

namespace {

ConstView tokens_view(const ValuesOnDevice<int32_t>& tokens, int64_t rows) {
  return {tokens.data(), {rows}, DType::i32};
}

}  // namespace

TEST_CASE("embedding copies the tokens' rows", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const OnDevice table(*backend, {1, 2, /**/ 3, 4, /**/ 5, 6}), y(*backend, zeros(8));
  const ValuesOnDevice<int32_t> tokens(*backend, {2, 0, 2, 1});
  backend->embedding_forward({.rows = 4, .vocabulary = 3, .width = 2}, tokens_view(tokens, 4), table, y);
  CHECK(y.host() == std::vector<float>{5, 6, 1, 2, 5, 6, 3, 4});
}

TEST_CASE("embedding adds gradients in the order of positions, and leaves other rows alone", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int64_t rows = GENERATE(1, 63, 300), width = GENERATE(1, 5, 64, 260);
  const auto type = GENERATE(DType::f32, DType::f16);
  if (!backend->supports(type)) return;
  CAPTURE(backend->name(), rows, width, type);
  const int64_t vocabulary = 40;
  std::vector<int32_t> words;
  for (int64_t r = 0; r < rows; ++r) words.push_back(static_cast<int32_t>(r * r % 37));  // some often, some never
  words.back() = 38;                                                                     // and one in the end alone
  const ValuesOnDevice<int32_t> tokens(*backend, words);
  const EmbeddingArgs args{.rows = rows, .vocabulary = vocabulary, .width = width};

  const OnDevice table(*backend, random_floats(vocabulary * width, 1)), y(*backend, zeros(rows * width), type);
  backend->embedding_forward(args, tokens_view(tokens, rows), table, y);
  const OnDevice dy(*backend, random_floats(rows * width, 2), type),
      dtable(*backend, random_floats(vocabulary * width, 3));
  auto expected = dtable.host();
  const auto out = y.host(), from = dy.host(), weights = OnDevice(*backend, table.host(), type).host();
  backend->embedding_backward(args, tokens_view(tokens, rows), dy, dtable);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < width; ++c) {
      const auto at = static_cast<size_t>(r * width + c);
      const auto entry = static_cast<size_t>(words[static_cast<size_t>(r)] * width + c);
      expected[entry] += from[at];
      if (out[at] != weights[entry]) FAIL_CHECK("row " << r << ", column " << c);
    }
  }
  CHECK(dtable.host() == expected);  // to the bit
}

TEST_CASE("a token that is not in the vocabulary is refused, on a GPU by a row that is NaN", "[kernels]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const int32_t token = GENERATE(3, -1);
  const OnDevice table(*backend, {1, 2, 3}), y(*backend, zeros(2)), dy(*backend, {1, 1}), dtable(*backend, zeros(3));
  const ValuesOnDevice<int32_t> tokens(*backend, {1, token});
  const EmbeddingArgs args{.rows = 2, .vocabulary = 3, .width = 1};
  if (backend->name() == "cpu") {
    CHECK_THROWS_AS(backend->embedding_forward(args, tokens_view(tokens, 2), table, y), InternalError);
    CHECK_THROWS_AS(backend->embedding_backward(args, tokens_view(tokens, 2), dy, dtable), InternalError);
    return;
  }
  backend->embedding_forward(args, tokens_view(tokens, 2), table, y);
  CHECK(y.host()[0] == 2);
  CHECK(std::isnan(y.host()[1]));
  backend->embedding_backward(args, tokens_view(tokens, 2), dy, dtable);
  CHECK(dtable.host() == std::vector<float>{0, 1, 0});
}

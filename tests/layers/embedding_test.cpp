#include "layers/embedding.h"

#include <catch.hpp>

#include "tests/kernels/kernel_backends.h"
#include "tests/kernels/on_device.h"

using namespace dgc;

TEST_CASE("embedding looks rows up, and words that did not come have no gradient", "[layers]") {
  const auto backend = GENERATE(from_range(kernel_backends())).make();
  const Embedding layer({.vocabulary = 4, .width = 2});
  const ValuesOnDevice<int32_t> tokens(*backend, {3, 0, 3, 3, 0, 1});
  const OnDevice table(*backend, {1, 2, /**/ 3, 4, /**/ 5, 6, /**/ 7, 8}), y(*backend, zeros(12));
  const std::vector<ConstView> x = {{tokens.data(), {3, 2}, DType::i32}}, params = {{table.view().data, {4, 2}}};
  const RunContext run;
  REQUIRE(layer.output_shape(std::vector{Shape{3, 2}}) == Shape{3, 2, 2});
  layer.forward({.backend = *backend,
                 .run = run,
                 .x = x,
                 .params = params,
                 .buffers = {},
                 .state = {},
                 .y = {y.view().data, {3, 2, 2}},
                 .saved = {}});
  CHECK(y.host() == std::vector<float>{7, 8, 1, 2, 7, 8, 7, 8, 1, 2, 3, 4});

  const OnDevice dy(*backend, {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60}),
      dtable(*backend, {0, 0, 100, 100, -0.f, 9, 0, 0});
  const std::vector<View> dx = {{nullptr, {3, 2}}}, dparams = {{dtable.view().data, {4, 2}}};
  layer.backward({.backend = *backend,
                  .run = run,
                  .x = x,
                  .params = params,
                  .y = {},
                  .saved = {},
                  .dy = {dy.view().data, {3, 2, 2}},
                  .dx = dx,
                  .dparams = dparams});
  const auto gradient = dtable.host();
  CHECK(gradient == std::vector<float>{7, 70, 106, 160, 0, 9, 8, 80});  // by hand, added
  CHECK(std::signbit(gradient[4]));                                     // not even 0 was added
}

TEST_CASE("embedding parameters, and what does not fit", "[layers]") {
  const auto params = Embedding({.vocabulary = 10, .width = 3}).params();
  REQUIRE(params.size() == 1);
  CHECK((params[0].name == "weight" && params[0].shape == Shape{10, 3}));
  CHECK((params[0].init.kind == Init::Kind::normal && params[0].init.value == 1));
  CHECK(Embedding({.vocabulary = 10, .width = 3, .init = {Init::Kind::uniform, 0.1f}}).params()[0].init.value == 0.1f);
  CHECK_THROWS_AS(Embedding({.vocabulary = 0, .width = 3}), UserError);
  CHECK_THROWS_AS(Embedding({.vocabulary = 10, .width = -3}), UserError);
}

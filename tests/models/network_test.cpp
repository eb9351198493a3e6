#include "models/network.h"

#include <catch.hpp>

#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/decoder.h"
#include "layers/embedding.h"
#include "layers/linear.h"
#include "layers/pool.h"
#include "layers/rnn.h"

using namespace dgc;

TEST_CASE("a network names its parameters after its layers, in their order", "[models]") {
  Network net({8, 6, 3});
  const int a = net.add("stem.conv", std::make_unique<Conv2d>(Conv2dOptions{.in = 3, .out = 4, .bias = false}), {0});
  const int b = net.add("stem.bn", std::make_unique<BatchNorm>(BatchNormOptions{.channels = 4}), {a});
  const int c = net.add("pool", std::make_unique<GlobalPool>(), {b});
  const int d = net.add("fc", std::make_unique<Linear>(LinearOptions{4, 10}), {c});
  CHECK(std::vector{a, b, c, d} == std::vector{1, 2, 3, 4});
  CHECK(net.output() == 4);

  std::vector<std::string> params, buffers;
  for (const ParamSpec& spec : net.params()) params.push_back(spec.name);
  for (const ParamSpec& spec : net.buffers()) buffers.push_back(spec.name);
  CHECK(params ==
        std::vector<std::string>{"stem.conv.weight", "stem.bn.weight", "stem.bn.bias", "fc.weight", "fc.bias"});
  CHECK(buffers == std::vector<std::string>{"stem.bn.running_mean", "stem.bn.running_var"});

  const auto& nodes = net.nodes();
  REQUIRE(nodes.size() == 4);
  CHECK((nodes[1].first_param == 1 && nodes[1].params == 2));
  CHECK((nodes[1].first_buffer == 0 && nodes[1].buffers == 2));
  CHECK((nodes[2].first_param == 3 && nodes[2].params == 0));
  CHECK((nodes[3].first_param == 3 && nodes[3].params == 2));
  CHECK((nodes[3].first_buffer == 2 && nodes[3].buffers == 0));
}

TEST_CASE("a network knows the shape of every tensor at any batch", "[models]") {
  Network net({8, 6, 3});
  net.add("conv", std::make_unique<Conv2d>(Conv2dOptions{.in = 3, .out = 5, .kernel = 3, .stride = 2}), {0});
  net.add("pool", std::make_unique<GlobalPool>(), {1});
  CHECK(net.shape(0) == Shape{1, 8, 6, 3});
  CHECK(net.shape(1, 7) == Shape{7, 3, 2, 5});
  CHECK(net.shape(2, 32) == Shape{32, 5});
  CHECK(net.shapes(7) == std::vector{Shape{7, 8, 6, 3}, Shape{7, 3, 2, 5}, Shape{7, 5}});
}

TEST_CASE("a layer that does not fit is named", "[models]") {
  Network net({8, 6, 3});
  net.add("conv", std::make_unique<Conv2d>(Conv2dOptions{.in = 3, .out = 5}), {0});
  CHECK_THROWS_AS(net.add("head.fc", std::make_unique<Linear>(LinearOptions{5, 2}), {1}), UserError);
  CHECK_THROWS_WITH(net.add("head.fc", std::make_unique<Linear>(LinearOptions{5, 2}), {1}),
                    Catch::StartsWith("layer head.fc: linear expects [batch, 5]") && Catch::Contains("[1, 8, 6, 5]"));
  CHECK(net.output() == 1);  // and nothing was added
  CHECK(net.params().size() == 2);
}

TEST_CASE("a network refuses inputs that do not exist, and a wrong number of them", "[models]") {
  Network net({8, 6, 3});
  const auto conv = [] { return std::make_unique<Conv2d>(Conv2dOptions{.in = 3, .out = 5}); };
  CHECK_THROWS_AS(net.add("conv", conv(), {1}), InternalError);
  CHECK_THROWS_AS(net.add("conv", conv(), {-1}), InternalError);
  CHECK_THROWS_AS(net.add("conv", conv(), {0, 0}), InternalError);
  CHECK_THROWS_AS(Network({1, 2, 3, 4, 5}), InternalError);  // no room for the batch
}

TEST_CASE("a loss may share a parameter with a layer: it exists once", "[models]") {
  const auto chain = [](int64_t width) {
    Network net({2}, Network::Input::tokens);
    net.add("encoder", std::make_unique<Embedding>(EmbeddingOptions{.vocabulary = 7, .width = width}), {0});
    return net;
  };
  const auto decoder = [] { return std::make_unique<Decoder>(DecoderOptions{.in = 3, .classes = 7}); };
  const auto names = [](const Network& net) {
    std::vector<std::string> list;
    for (const ParamSpec& spec : net.params()) list.push_back(spec.name);
    return list;
  };
  Network own = chain(3), tied = chain(3);
  own.set_loss("decoder", decoder());
  tied.set_loss("decoder", decoder(), {{"weight", "encoder.weight"}});
  CHECK(names(own) == std::vector<std::string>{"encoder.weight", "decoder.weight", "decoder.bias"});
  CHECK((own.loss_params() == std::vector{1, 2} && own.own_loss_params() == 2));
  CHECK(names(tied) == std::vector<std::string>{"encoder.weight", "decoder.bias"});
  CHECK((tied.loss_params() == std::vector{0, 1} && tied.own_loss_params() == 1));
  CHECK(tied.input_type(DType::f16) == DType::i32);
  CHECK(Network({2}).input_type(DType::f16) == DType::f16);

  Network other = chain(4);
  CHECK_THROWS_WITH(other.set_loss("decoder", decoder()), Catch::StartsWith("loss decoder: decoder expects [..., 3]"));
  other.add("rnn", std::make_unique<Rnn>(RnnOptions{.in = 4, .hidden = 3}), {1});
  CHECK_THROWS_WITH(other.set_loss("decoder", decoder(), {{"weight", "encoder.weight"}}),
                    Catch::Contains("[7, 3]") && Catch::Contains("encoder.weight") && Catch::Contains("[7, 4]"));
  CHECK_THROWS_AS(chain(3).set_loss("decoder", decoder(), {{"weight", "nowhere"}}), InternalError);
  CHECK_THROWS_AS(tied.set_loss("decoder", decoder()), InternalError);
  CHECK(tied.freeze("decoder.weight") == 1);
  CHECK(tied.params()[0].frozen);
  CHECK_THROWS_AS(tied.add("end", std::make_unique<Linear>(LinearOptions{3, 3}), {1}), InternalError);
}

TEST_CASE("a name freezes what is called so and what lies below it, and nothing that begins alike", "[models]") {
  Network net({8, 6, 3});
  for (const char* name : {"layer1.conv", "layer10.conv"}) {
    net.add(name, std::make_unique<Conv2d>(Conv2dOptions{.in = 3, .out = 3}), {net.output()});
  }
  const auto frozen = [&] {
    std::vector<std::string> names;
    for (const ParamSpec& spec : net.params()) {
      if (spec.frozen) names.push_back(spec.name);
    }
    return names;
  };
  CHECK(net.freeze("layer") == 0);
  CHECK(net.freeze("layer1.conv.bias") == 1);
  CHECK(frozen() == std::vector<std::string>{"layer1.conv.bias"});
  CHECK(net.freeze("layer1") == 2);
  CHECK(frozen() == std::vector<std::string>{"layer1.conv.weight", "layer1.conv.bias"});
}

TEST_CASE("a tensor that no memory holds is named, and no product overflows", "[models]") {
  const auto wide = [](int64_t in, int64_t out) { return std::make_unique<Linear>(LinearOptions{in, out}); };
  Network net({int64_t{1} << 20});
  CHECK_THROWS_WITH(net.add("fc", wide(int64_t{1} << 20, int64_t{1} << 20), {0}),
                    Catch::StartsWith("fc.weight: [1048576, 1048576] is more than the 2^36 numbers"));
  Network fits({16});
  fits.add("fc", wide(16, int64_t{1} << 30), {0});
  CHECK(fits.shape(1, 64) == Shape{64, int64_t{1} << 30});
  CHECK_THROWS_WITH(fits.shapes(65), Catch::StartsWith("layer fc: [65, 1073741824] is more than"));
  CHECK_THROWS_WITH(fits.shapes(INT64_MAX / 2), Catch::StartsWith("the input: [4611686018427387903, 16] is more than"));
}

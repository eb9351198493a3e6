#include "models/alexnet.h"

#include <catch.hpp>

#include "tests/models/network_facts.h"

using namespace dgc;

TEST_CASE("AlexNet has Caffe's 60,965,224 parameters", "[models]") {
  const Network net = make_alexnet({}, {224, 224, 3});
  const ParamLayout layout(net.params());
  const std::pair<const char*, int64_t> expected[] = {
      {"conv1", 96 * (3 * 11 * 11 + 1)},  {"conv2", 256 * (48 * 5 * 5 + 1)},  {"conv3", 384 * (256 * 3 * 3 + 1)},
      {"conv4", 384 * (192 * 3 * 3 + 1)}, {"conv5", 256 * (192 * 3 * 3 + 1)}, {"fc6", 4096 * (256 * 6 * 6 + 1)},
      {"fc7", 4096 * (4096 + 1)},         {"fc8", 1000 * (4096 + 1)}};
  REQUIRE(layout.size() == 16);
  for (int i = 0; i < 8; ++i) {
    CHECK(layout.spec(2 * i).name == std::string(expected[i].first) + ".weight");
    CHECK(layout.spec(2 * i + 1).name == std::string(expected[i].first) + ".bias");
    CHECK(layout.numel(2 * i) + layout.numel(2 * i + 1) == expected[i].second);
  }
  CHECK(layout.parameters() == 60965224);
  CHECK(net.buffers().empty());
  CHECK(net.shape(net.output(), 128) == Shape{128, 1000});
}

TEST_CASE("AlexNet's layers are the paper's, in its order", "[models]") {
  CHECK(node_names(make_alexnet({}, {224, 224, 3})) ==
        std::vector<std::string>{"conv1", "conv1.relu", "norm1",    "pool1",      "conv2", "conv2.relu",
                                 "norm2", "pool2",      "conv3",    "conv3.relu", "conv4", "conv4.relu",
                                 "conv5", "conv5.relu", "pool5",    "flatten",    "fc6",   "fc6.relu",
                                 "drop6", "fc7",        "fc7.relu", "drop7",      "fc8"});
}

TEST_CASE("AlexNet's least image leaves one pixel, and a smaller one none", "[models]") {
  const int64_t least = kAlexNetLeastSide;
  CHECK_NOTHROW(make_alexnet({}, {least, least, 3}));
  CHECK_THROWS_AS(make_alexnet({}, {least - 1, least, 3}), UserError);
  CHECK_THROWS_AS(make_alexnet({}, {least, least - 1, 3}), UserError);
}

TEST_CASE("AlexNet names the layer that an image is too small for", "[models]") {
  CHECK_THROWS_AS(make_alexnet({}, {32, 32, 3}), UserError);
  CHECK_THROWS_WITH(make_alexnet({}, {32, 32, 3}),
                    Catch::StartsWith("layer pool5: ") && Catch::Contains("[1, 1, 1, 256]"));
  CHECK_THROWS_WITH(make_alexnet({}, {224, 224, 1}), Catch::StartsWith("layer conv1: "));
}

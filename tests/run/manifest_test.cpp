#include "run/manifest.h"

#include <catch.hpp>

#include "tests/config/example.h"

using namespace dgc;
using test::refusal;
using test::replaced;

namespace {

Manifest example() {
  Manifest m;
  m.step = 1200;
  m.epoch = 3;
  m.values.set("best_loss", 0.25).set("workers", 4).set("hash", "00ff");
  m.files = {{"weights.safetensors", 1234, "0123456789abcdef"}, {"worker_0.bin", 0, "ef46db3751d8e999"}};
  return m;
}

std::string said(const std::string& from, const std::string& to) {
  return refusal([&] { parse_manifest(replaced(to_manifest_json(example()), from, to), "manifest.json"); });
}

}  // namespace

TEST_CASE("a manifest comes back as it was written", "[config]") {
  CHECK(parse_manifest(to_manifest_json(example()), "manifest.json") == example());
  CHECK(parse_manifest(to_manifest_json({}), "manifest.json") == Manifest{});
}

TEST_CASE("a wrong manifest is refused, and says where", "[config]") {
  CHECK(said("\"version\": 1", "\"version\": 2") ==
        "manifest.json: checkpoint format 2, but this program reads format 1");
  CHECK(said("\"step\": 1200,", "") == "manifest.json: step is missing");
  CHECK(said("1200", "-1") == "manifest.json: step must be a whole number, not a number");
  CHECK(said("1200", "1.5") != "");
  CHECK(said("\"epoch\": 3", "\"epoch\": 3, \"more\": 1") ==
        "manifest.json: has a key that this version does not know");
  CHECK(said("0.25", "[]") ==
        "manifest.json: values: best_loss: must be a number, string, boolean or null, not an array");
  CHECK(said("1234", "\"x\"") == "manifest.json: files[0]: bytes must be a whole number, not a string");
  CHECK(said("0123456789abcdef", "0123456789ABCDEF") ==
        "manifest.json: files[0]: xxh64 must be 16 lower-case hex digits");
  CHECK(said("weights.safetensors", "../../etc/passwd") == "manifest.json: files[0]: name must be a plain file name");
  CHECK(said("weights.safetensors", "..") != "");
  CHECK(said("worker_0.bin", "weights.safetensors") == "manifest.json: weights.safetensors is listed twice");
  CHECK(said("\"epoch\": 3", "\"epoch\": 3, \"epoch\": 3") == "manifest.json: epoch: this key is given twice");
}

TEST_CASE("a manifest cut short is refused", "[config]") {
  const std::string whole = to_manifest_json(example());
  for (size_t length = 0; length < whole.size() - 1; ++length) {
    CAPTURE(length);
    CHECK(refusal([&] { parse_manifest(whole.substr(0, length), "manifest.json"); }) != "");
  }
}

#include <catch.hpp>

#include "tests/commands/trained.h"

namespace dgc {
namespace {

using namespace test;
using Catch::Contains;

}  // namespace

TEST_CASE("transcribe names a recording that is shorter than a frame, and the others follow") {
  const Program dgc;
  const TinySpeech speech;
  train_on_speech(dgc, speech, "speech");
  const TempFolder folder;
  write_sound(folder, "short.wav", std::vector<float>(10), {.rate = 4000});
  const std::string brief = folder.path() + "/short.wav", good = speech.path("26.wav").string();
  const Result result = dgc.run({"transcribe", "speech", brief, good});
  CHECK(result.code == 2);
  CHECK_THAT(result.out, Catch::StartsWith(good + ": "));
  CHECK(is_one_line(result.out));
  CHECK_THAT(result.err, Contains("short.wav: it has 10 samples, fewer than the ") &&
                             Contains("1 of 2 files could not be used; each is named above"));
  CHECK_THAT(dgc.run({"transcribe", "speech", good, "--json"}).out,
             Catch::StartsWith("{\"file\":\"" + good + "\",\"text\":\"") && Catch::EndsWith("\"}\n"));
}

}  // namespace dgc

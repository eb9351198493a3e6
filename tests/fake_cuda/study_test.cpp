// dgc study on a machine with several GPUs, which are fakes: its trainings are processes of their own.
#include <fmt/core.h>

#include <catch.hpp>
#include <csignal>
#include <string>

#include "tests/commands/program.h"

using namespace dgc::test;
using Catch::Contains;

TEST_CASE("trainings of a study that run at once take the GPUs in turn", "[study]") {
  const Program dgc;
  dgc.write("study.json", R"({"config": "tiny.json", "set": {"device": "auto", "training.epochs": 1,
                              "training.eval_every_epochs": 0},
                              "runs": {"dgc": {"seeds": [1, 2, 3]}, "named": {"seeds": [1], "set": {"device": "cpu"}}}})");
  Child study(dgc.folder(), {"DGC_FAKE_GPUS=2", DGC_ON_FAKE_CUDA, "study", "study.json", "--out", "out", "--jobs", "4"},
              "env");
  INFO(study.err());
  REQUIRE(study.wait() == 0);
  CHECK_THAT(dgc.read("out/dgc/seed1.txt"), Contains(" on cuda:0"));
  CHECK_THAT(dgc.read("out/dgc/seed2.txt"), Contains(" on cuda:1"));
  CHECK_THAT(dgc.read("out/dgc/seed3.txt"), Contains(" on cuda:0"));
  CHECK_THAT(dgc.read("out/named/seed1.txt"), Contains(" on cpu"));
  CHECK_THAT(dgc.read("out/dgc/seed2/config.json"), Contains(R"("device": "auto")"));
}

TEST_CASE("a training of a study takes the GPU of the one that has ended", "[study]") {
  const Program dgc;
  dgc.write("study.json", R"({"config": "tiny.json", "seeds": [1],
                              "set": {"device": "auto", "training.eval_every_epochs": 0}, "runs": {
                              "a": {"set": {"training.epochs": 1}}, "b": {"set": {"training.epochs": 100000}},
                              "c": {"set": {"training.epochs": 100000}}}})");
  Child study(dgc.folder(), {"DGC_FAKE_GPUS=2", DGC_ON_FAKE_CUDA, "study", "study.json", "--out", "out", "--jobs", "2"},
              "env");
  const auto told = [&](const char* run) { return dgc.read(fmt::format("out/{}/seed1.txt", run)); };
  REQUIRE(wait_until([&] { return told("c").find(" on cuda:") != std::string::npos; }));
  study.send(SIGINT);
  CHECK(study.wait() == 130);
  CHECK_THAT(told("a"), Contains(" on cuda:0"));
  CHECK_THAT(told("b"), Contains(" on cuda:1"));
  CHECK_THAT(told("c"), Contains(" on cuda:0"));
}

#include "train/agreement.h"

#include <catch.hpp>
#include <csignal>

#include "tasks/make.h"
#include "tensor/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/signal_this_process.h"
#include "tests/support/tiny.h"
#include "train/ranks/failure.h"
#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

using Catch::Contains;
using test::tiny_config;

Row facts_of(const std::vector<std::string>& overrides, const TrainOptions& options = {}) {
  const Config config = tiny_config(overrides);
  const auto train = make_images(config, Split::train), test = make_images(config, Split::test);
  return start_facts({config, options, {*train, *test}});
}

// What rank 0, which throws first, says when rank 2 of three starts from other facts.
void compare(const Row& all, const Row& rank2) {
  const auto group = make_thread_communicators(3);
  run_ranks(group, [&](Communicator& c) {
    const auto device = make_cpu_device();
    in_unison(c, *device, [&] { require_agreement(c, *device, c.rank() == 2 ? rank2 : all); });
  });
}

Row with(Row facts, const std::string& field, const std::string& value) { return facts.set(field, value); }

}  // namespace

TEST_CASE("ranks that start from the same agree") {
  CHECK_NOTHROW(compare(facts_of({}), facts_of({})));
  CHECK_NOTHROW(compare(facts_of({}), facts_of({"seed=3"})));  // the config's own
}

TEST_CASE("the rank and the field that differ are named") {
  const Row facts = facts_of({});
  const auto [other, expected] = GENERATE_COPY(table<Row, std::string>({
      {facts_of({"seed=4"}), "rank 2 was started with seed = 4, and rank 0 with 3; give all ranks the same config"},
      {facts_of({"optimizer.warmup.epochs=2"}), "rank 2 was started with optimizer.warmup.epochs = 2"},
      {facts_of({R"(optimizer={"type": "sgd"})"}), "rank 2 was started with optimizer."},
      {facts_of({"name=\"other\""}), "rank 2 was started with name = other, and rank 0 with tiny"},
      {facts_of({"output=\"runs/x\""}), "rank 2 was started with output = runs/x"},
      {facts_of({}, {.out = "elsewhere"}), "option --out: elsewhere there, runs/tiny on rank 0"},
      {facts_of({}, {.out = {}, .resume = true}),
       "option --resume: given there, not given on rank 0; give all ranks the same options"},
      {with(facts, "program", "9.9 (abc)"), "rank 2 differs from rank 0 in: program: 9.9 (abc) there"},
      {with(facts, "formats", "messages 9"), "formats: messages 9 there"},
      {with(facts, "training set, its number of images", "99"),
       "training set, its number of images: 99 there, 100 on rank 0; give all ranks the same data"},
      {with(facts, kInitialWeights, "0123456789abcdef"),
       "model.init_from, its checksum: 0123456789abcdef there, missing on rank 0; give all ranks the same file"},
      {with(facts, "parameter 3", "5.weight [4, 128] at 64"), "parameter 3: 5.weight [4, 128] at 64 there"},
      {with(facts, "parameter 9", "6.weight [4] at 640"), "parameter 9: 6.weight [4] at 640 there, missing on rank 0"},
  }));
  CHECK_THROWS_WITH(compare(facts, other), Contains(expected));
  CHECK_THROWS_AS(compare(facts, other), UserError);
  if (other.fields().size() == facts.fields().size() + 1) {
    CHECK_THROWS_WITH(compare(other, facts), Contains("missing there"));
  }
}

TEST_CASE("the checksum of a data set sees its pixels and its labels") {
  const auto checksum = [](const Row& facts) { return facts.text("training set, a checksum of some images").value(); };
  const std::string truth = checksum(facts_of({}));
  CHECK(checksum(facts_of({})) == truth);
  CHECK(checksum(facts_of({"seed=4"})) != truth);  // the synthetic set is made from it
  CHECK(checksum(facts_of({"data.noise=2"})) != truth);
  CHECK(checksum(facts_of({"data.train_limit=99"})) != truth);
  CHECK(facts_of({"data.train_samples=3"}).find("training set, a checksum of some images") != nullptr);
}

TEST_CASE("a signal ends the wait for the folder that rank 0 has made") {
  const test::TempRun folder;
  {
    const InterruptGuard guard;
    test::signal_this_process(SIGTERM);
    CHECK_THROWS_AS(require_same_directory(folder.path(), "a lock"), Interrupted);
  }
  const InterruptGuard forgets;  // the signal
}

}  // namespace dgc

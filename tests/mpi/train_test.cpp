#include <fmt/core.h>

#include "paths.h"
#include "tests/mpi/mpirun.h"

// dgc itself under mpirun.
namespace dgc {
namespace {

using namespace test;
using Catch::Contains;
using Strings = std::vector<std::string>;

Strings train(const std::string& run, const Strings& settings, const std::string& config = "tiny.json") {
  Strings words = {DGC_BINARY, "train", config, "--out", run};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

const std::string kSgd = R"(optimizer={"type": "sgd", "momentum": 0.9})";

Strings operator+(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// mpirun's own way to start unlike ranks (FIRST : -n 1 LAST) crashes in Debian 13 (open-mpi/ompi, issue 13303).
Strings last_differs(int ranks, const Strings& first, const Strings& last) {
  const std::string choose =
      "((OMPI_COMM_WORLD_RANK + 1 == OMPI_COMM_WORLD_SIZE)) && exec \"${@:$1 + 2}\"; exec \"${@:2:$1}\"";
  return Strings{"-n", std::to_string(ranks), "bash", "-c", choose, "bash", std::to_string(first.size())} + first +
         last;
}

Result mpirun(const Program& dgc, const Strings& arguments) { return Mpirun(dgc.folder(), arguments).wait(); }

// A run's first `steps` rows of metrics tell that training is under way.
bool has_steps(const Program& dgc, const std::string& run, size_t steps) {
  return wait_until([&] { return dgc.rows(run).size() >= steps; });
}

// A handful of records of CIFAR-10; `pixel` is in the first image.
void write_cifar10(const Program& dgc, const std::string& folder, char pixel) {
  std::filesystem::create_directory(dgc.folder() / folder);
  for (const std::string file :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"}) {
    std::string bytes(4 * 3073, '\3');
    if (file == "data_batch_1") bytes[1] = pixel;
    dgc.write(folder + "/" + file + ".bin", bytes);
  }
}

}  // namespace

TEST_CASE("four workers give the same bits in one process, as threads, and as processes") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Strings extra = Strings{"optimizer.clip_norm=0.5"} +
                        GENERATE(values<Strings>({{"exchange.wire.values=fp32"},
                                                  {"exchange.wire.values=fp16"},
                                                  {"exchange.transport=dense"},
                                                  {"exchange.workers_per_group=2"},
                                                  {"exchange.algorithm=split_reduce"},
                                                  {"exchange.every_steps=4"},
                                                  {R"(exchange={"every_steps": 4, "wait": 1000})"},
                                                  {"exchange.small_tensors=dense_fp16"},
                                                  {"exchange.small_tensors=sparse", "exchange.wire.indices=rice"},
                                                  {kSgd},
                                                  {kSgd, "exchange.dense_values=fp16"}}));
  const auto settings = [&](int ranks, int workers) {
    return extra + Strings{fmt::format("workers_per_rank={}", workers), fmt::format("ranks={}", ranks)};
  };
  const auto alone = [&](const std::string& run, int ranks, int workers) {
    const Strings words = train(run, settings(ranks, workers));
    const Result result = dgc.run(Strings(words.begin() + 1, words.end()));
    INFO(result.err);
    REQUIRE(result.code == 0);
  };
  const auto processes = [&](const std::string& run, int ranks, int workers) {
    const Result result = mpirun(dgc, Strings{"-n", std::to_string(ranks)} + train(run, settings(ranks, workers)));
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK_THAT(result.err, Contains(fmt::format("{} ranks exchange through mpi", ranks)));
    CHECK_THAT(result.out, Contains("accuracy"));
  };
  alone("one", 1, 4);
  alone("threads", 4, 1);
  processes("four", 4, 1);
  processes("two", 2, 2);
  const std::string truth = dgc.final_hash("one");
  CHECK(truth.size() == 16);
  for (const std::string run : {"threads", "four", "two"}) CHECK(dgc.final_hash(run) == truth);
}

TEST_CASE("processes that overlap exchange and backward pass give the same bits, and say what that hid") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Strings settings = {"exchange.bucket_mb=0.0001", "exchange.wire.values=fp16"};
  const Strings alone = train("one", settings + Strings{"workers_per_rank=4"});
  REQUIRE(dgc.run(Strings(alone.begin() + 1, alone.end())).code == 0);
  for (const auto& [ranks, workers] : {std::pair{4, 1}, {2, 2}}) {
    const std::string run = fmt::format("of{}", ranks);
    const Strings own = {fmt::format("workers_per_rank={}", workers)};
    const Result result = mpirun(dgc, Strings{"-n", std::to_string(ranks)} + train(run, settings + own));
    INFO(result.err);
    REQUIRE(result.code == 0);
    CHECK_THAT(result.err, Contains("buckets while others are computed"));
    CHECK_THAT(result.out, Contains("of it behind the backward pass"));
    CHECK(dgc.final_hash(run) == dgc.final_hash("one"));
  }
  const Result clipped =
      mpirun(dgc, Strings{"-n", "2"} + train("clipped", settings + Strings{"optimizer.clip_norm=1"}));
  CHECK(clipped.code == 0);
  CHECK_THAT(clipped.err, Contains("exchange.overlap: off, as optimizer.clip_norm needs all gradients"));
}

TEST_CASE("SIGUSR1 to mpirun saves on all ranks, exit code 130, and the resumed run ends in the same bits") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Strings settings = {"workers_per_rank=2", "training.epochs=50", "training.eval_every_epochs=0",
                            "checkpoint.every_epochs=0", "exchange.communicator=\"mpi\""};
  REQUIRE(mpirun(dgc, Strings{"-n", "2"} + train("whole", settings)).code == 0);

  Mpirun stopped(dgc.folder(), Strings{"-n", "2"} + train("stopped", settings));
  REQUIRE(has_steps(dgc, "stopped", 10));
  stopped.send(SIGUSR1);
  const Result result = stopped.wait();
  INFO(result.err);
  check_code(result, 130);
  const std::string said = "the state is saved, go on with --resume";
  CHECK(result.err.find(said) != std::string::npos);
  CHECK(result.err.find(said) == result.err.rfind(said));
  CHECK(errors_in(result.err).empty());
  REQUIRE(dgc.rows("stopped").size() < 300);

  REQUIRE(mpirun(dgc, Strings{"-n", "2"} + train("stopped", settings) + Strings{"--resume"}).code == 0);
  CHECK(dgc.final_hash("stopped") == dgc.final_hash("whole"));
}

TEST_CASE("others go on while a rank is stopped, which then takes over what they did") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Strings settings = {"exchange.every_steps=4",        "exchange.wait=0.02",    "training.epochs=3",
                            "data.train_samples=20000",      "workers_per_rank=1",    "training.eval_every_epochs=0",
                            "exchange.failure_timeout_s=60", "check_replicas_every=1"};
  Mpirun run(dgc.folder(), Strings{"-n", "3"} + train("run", settings));
  REQUIRE(has_steps(dgc, "run", 10));
  const std::vector<pid_t> ranks = run.ranks();
  REQUIRE(ranks.size() == 3);
  kill(ranks[2], SIGSTOP);
  const size_t rows = dgc.rows("run").size();
  CHECK(has_steps(dgc, "run", rows + 20));
  kill(ranks[2], SIGCONT);
  // Then all are stopped by a signal, and have the same weights, or --resume would say so.
  REQUIRE(has_steps(dgc, "run", rows + 60));
  run.send(SIGUSR1);
  const Result stopped = run.wait();
  INFO(stopped.err);
  check_code(stopped, 130);
  CHECK_THAT(stopped.err, Contains("rank 2 is late for the exchange and will be in a later one"));
  size_t absences = 0;
  int64_t step = 0;
  for (const Row& row : dgc.rows("run")) {
    absences += row.text("absent_ranks").value_or("").find('2') != std::string::npos;
    step = std::max(step, row.integer("step").value_or(0));
  }
  CHECK(absences >= 15);
  const Strings some_more = settings + Strings{fmt::format("training.max_steps={}", step + 40)};
  const Result resumed = mpirun(dgc, Strings{"-n", "3"} + train("run", some_more) + Strings{"--resume"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(dgc.final_hash("run").size() == 16);
}

TEST_CASE("of all ranks rank 0 holds the run, and a finished one is left alone by all") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Strings settings = {"workers_per_rank=2", "training.epochs=100"};
  Mpirun first(dgc.folder(), Strings{"-n", "2"} + train("run", settings));
  REQUIRE(has_steps(dgc, "run", 3));
  const std::vector<pid_t> ranks = first.ranks();
  REQUIRE(ranks.size() == 2);
  for (const pid_t rank : ranks) kill(rank, SIGSTOP);  // so that the run does not end before the second one has come
  {
    const TempRun elsewhere;  // where the second one's words go
    const std::string config = (dgc.folder() / "tiny.json").string(), run = (dgc.folder() / "run").string();
    const Result second =
        Mpirun(elsewhere.path(), Strings{"-n", "2"} + train(run, settings, config) + Strings{"--resume"}).wait();
    INFO(second.err);
    check_code(second, 2);
    REQUIRE(errors_in(second.err).size() == 1);
    CHECK_THAT(second.err, Contains(fmt::format("is being trained by process {} on ", ranks[0])));
  }
  for (const pid_t rank : ranks) kill(rank, SIGCONT);
  REQUIRE(first.wait().code == 0);
  const std::string metrics = dgc.read("run/metrics.jsonl");
  const Result again = mpirun(dgc, Strings{"-n", "2"} + train("run", settings) + Strings{"--resume"});
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Contains("run is finished: all its 600 steps are done"));
  CHECK(dgc.read("run/metrics.jsonl") == metrics);
}

TEST_CASE("a rank that hangs ends the run, and the others name it") {
  if (!have_mpirun()) return;
  const Program dgc;
  Mpirun run(dgc.folder(), Strings{"-n", "2"} + train("run", {"workers_per_rank=2", "training.epochs=100000",
                                                              "exchange.failure_timeout_s=5"}));
  REQUIRE(has_steps(dgc, "run", 10));
  const std::vector<pid_t> ranks = run.ranks();
  REQUIRE(ranks.size() == 2);
  kill(ranks[1], SIGSTOP);
  const Result result = run.wait();
  INFO(result.err);
  check_code(result, 1);
  const Strings errors = errors_in(result.err);
  REQUIRE(errors.size() == 1);
  CHECK_THAT(errors[0], Catch::StartsWith("error: rank 0: rank 1 (") &&
                            Contains(fmt::format("pid {}) has not answered for 4 s", ranks[1])));
}

TEST_CASE("what keeps a run from starting is said once, by the first rank that it keeps, and leaves nothing behind") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Strings good = train("run", {"workers_per_rank=2"});
  const auto [arguments, expected] = GENERATE_COPY(table<Strings, std::string>({
      {Strings{"-n", "3"} + train("run", {"seed=-1"}), "error: rank 0: --set seed=-1: seed"},
      {last_differs(3, good, train("run", {}, "nowhere.json")), "error: rank 2: nowhere.json"},
      {Strings{"-n", "2"} + train("run", {"ranks=3"}), "error: rank 0: ranks: 3 does not fit the 2 processes"},
      {Strings{"-n", "2"} + train("run", {"exchange.communicator=\"threads\""}),
       "error: rank 0: exchange.communicator"},
      {Strings{"-n", "2"} + train("run", {"device=\"cuda:99\""}), "error: rank 0: device: 'cuda:99'"},
      {Strings{"-n", "2", DGC_BINARY, "train", "--frob"}, "error: dgc train: "},
      {last_differs(3, good, train("run", {"workers_per_rank=2", "seed=9"})),
       "error: rank 0: rank 2 was started with seed = 9, and rank 0 with 1; give all ranks the same config"},
      {last_differs(3, good, good + Strings{"--resume"}),
       "error: rank 0: rank 2 differs from rank 0 in: option --resume: given there, not given on rank 0"},
  }));
  CAPTURE(arguments);
  const Result result = mpirun(dgc, arguments);
  INFO(result.err);
  check_code(result, 2);
  const Strings errors = errors_in(result.err);
  REQUIRE(errors.size() == 1);
  CHECK_THAT(errors[0], Catch::StartsWith(expected));
  CHECK_FALSE(std::filesystem::exists(dgc.folder() / "run"));
}

TEST_CASE("ranks that see other data, or a run that is there, do not start") {
  if (!have_mpirun()) return;
  const Program dgc;
  write_cifar10(dgc, "a", 1);
  write_cifar10(dgc, "b", 2);
  const Strings words =
      train((dgc.folder() / "run").string(),
            {R"(data={"type": "cifar10", "path": "."})", "model.classes=10", "training.batch_per_worker=1"},
            (dgc.folder() / "tiny.json").string());
  const auto in = [&](const char* folder) { return Strings{"env", "-C", (dgc.folder() / folder).string()} + words; };
  const Result other = mpirun(dgc, last_differs(2, in("a"), in("b")));
  INFO(other.err);
  check_code(other, 2);
  REQUIRE(errors_in(other.err).size() == 1);
  CHECK_THAT(errors_in(other.err)[0],
             Contains("rank 1 differs from rank 0 in: training set, a checksum of some images"));
  CHECK_FALSE(std::filesystem::exists(dgc.folder() / "run"));

  std::filesystem::create_directories(dgc.folder() / "run" / "checkpoints");
  const Result there = mpirun(dgc, Strings{"-n", "2"} + train("run", {"workers_per_rank=2"}));
  INFO(there.err);
  check_code(there, 2);
  REQUIRE(errors_in(there.err).size() == 1);
  CHECK_THAT(errors_in(there.err)[0], Contains("rank 0: run already holds checkpoints, but is not a run directory"));
}

TEST_CASE("ranks that do not see one run directory do not start, as they could not save") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Strings words = train("run", {"workers_per_rank=2"}, (dgc.folder() / "tiny.json").string());
  const auto in = [&](const char* folder) {
    std::filesystem::create_directory(dgc.folder() / folder);
    return Strings{"env", "-C", (dgc.folder() / folder).string()} + words;
  };
  const Result result = mpirun(dgc, last_differs(2, in("here"), in("there")));
  INFO(result.err);
  check_code(result, 2);
  REQUIRE(errors_in(result.err).size() == 1);
  CHECK_THAT(errors_in(result.err)[0],
             Catch::StartsWith("error: rank 1: ") && Contains("there/run is not the folder that rank 0 has made"));
  CHECK(std::filesystem::is_empty(dgc.folder() / "there"));
  CHECK(dgc.rows("here/run").empty());
}

TEST_CASE("dgc bench train measures steps of all ranks, and rank 0 prints them") {
  if (!have_mpirun()) return;
  const Program dgc;
  const Result result = mpirun(dgc, {"-n", "2", DGC_BINARY, "bench", "train", "tiny.json", "--json", "--warmup", "1",
                                     "--steps", "1", "--repeats", "1"});
  INFO(result.err);
  check_code(result, 0);
  CHECK_THAT(result.out, Catch::StartsWith("{\"bench\":\"train\""));
  CHECK(result.out.find('\n') == result.out.size() - 1);
}

TEST_CASE("dgc info tells the launcher and the communicators") {
  const Program dgc;
  const Result alone = dgc.run({"info"});
  CHECK_THAT(alone.out, Contains("launcher       none: one process"));
  if (!have_mpirun()) return;
  CHECK_THAT(alone.out, Contains("mpi (" + mpi_description() + ")"));
  CHECK_THAT(mpirun(dgc, {"-n", "2", DGC_BINARY, "info"}).out,
             Contains("launcher       mpirun: rank 1 of 2, number 1 of 2 on this machine; MPI connects them"));
}

}  // namespace dgc

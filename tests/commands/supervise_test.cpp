#include <fmt/core.h>

#include <catch.hpp>

#include "tests/commands/program.h"

// dgc train --max-restarts: the training is a child of the program that the test starts.
namespace dgc {
namespace {

using namespace test;
namespace fs = std::filesystem;
using Catch::Contains;

std::vector<std::string> train(const std::vector<std::string>& more) { return long_run("run", more); }
// A training that does not end by itself.
std::vector<std::string> endless(const std::vector<std::string>& more) { return long_run("run", more, kEndlessEpochs); }

bool is_zombie_or_gone(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(file, line)) return true;
  return line.compare(line.rfind(')') + 2, 1, "Z") == 0;
}

// The running child of a process; 0: none at the moment.
pid_t child_of(pid_t parent) {
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", parent));
  for (pid_t child = 0; children >> child;) {
    if (!is_zombie_or_gone(child)) return child;
  }
  return 0;
}

// Waits until the child has made `rows` rows, and kills it. False when there is none to kill.
bool kill_child_after(const Program& dgc, const Child& supervisor, size_t rows) {
  if (!wait_until([&] { return dgc.rows("run").size() >= rows; })) return false;
  pid_t child = 0;
  if (!wait_until([&] { return (child = child_of(supervisor.pid())) != 0; })) return false;
  return kill(child, SIGKILL) == 0 && wait_until([&] { return is_zombie_or_gone(child); });
}

void write_program(const fs::path& file, const std::string& script) {
  std::ofstream(file) << "#!/bin/sh\n" << script;
  fs::permissions(file, fs::perms::owner_all);
}

// A launcher that writes down how it is stopped, and ends half a second after it has been told so often.
void write_mpirun(const Program& dgc, int signals = 1) {
  write_program(dgc.folder() / "mpirun",
                fmt::format("trap 'echo gently >> said' USR1\n"
                            "trap 'echo at once >> said; kill $!; exit 1' INT TERM\n"
                            "sleep 1000 &\n"  // a rank
                            "touch started said\n"
                            "while [ $(wc -l < said) -lt {} ]; do sleep 0.05; done\n"
                            "sleep 0.5\n"
                            "kill $!\n"
                            "exit 130\n",
                            signals));
}

std::string hash_of_an_undisturbed_run(const Program& dgc) {
  const Result whole =
      dgc.run({"train", "tiny.json", "--out", "whole", "--set", fmt::format("training.epochs={}", kLongEpochs), "--set",
               "training.eval_every_epochs=0"});
  REQUIRE(whole.code == 0);
  return dgc.final_hash("whole");
}

}  // namespace

TEST_CASE("a training that is killed is started again, and ends in the same bits") {
  const Program dgc;
  const std::string truth = hash_of_an_undisturbed_run(dgc);
  // Whatever starts processes can be in between.
  const bool launched = GENERATE(false, true);
  Child supervisor(dgc.folder(), launched ? train({"--max-restarts", "2", "--launch", "env SOME_VARIABLE=1"})
                                          : train({"--max-restarts", "2"}));
  REQUIRE(kill_child_after(dgc, supervisor, 5));
  REQUIRE(kill_child_after(dgc, supervisor, dgc.rows("run").size() + 10));
  const int code = supervisor.wait();
  INFO(supervisor.err());
  REQUIRE(code == 0);
  CHECK(dgc.final_hash("run") == truth);
  CHECK_THAT(supervisor.err(), Contains("was ended by signal 9 (Killed): restart 1 of 2 in 1 s, from its newest") &&
                                   Contains("restart 2 of 2 in 2 s"));
}

TEST_CASE("a training that keeps dying is given up, with its exit code") {
  const Program dgc;
  Child supervisor(dgc.folder(), endless({"--max-restarts", "1"}));
  REQUIRE(kill_child_after(dgc, supervisor, 3));
  REQUIRE(kill_child_after(dgc, supervisor, dgc.rows("run").size() + 3));
  CHECK(supervisor.wait() == 128 + SIGKILL);
  CHECK_THAT(supervisor.err(), Contains("has had its 1 restart\n"));
}

TEST_CASE("a training is started again where its program was replaced meanwhile") {
  const Program dgc;
  const std::string truth = hash_of_an_undisturbed_run(dgc);
  fs::copy_file(DGC_BINARY, dgc.folder() / "built");
  std::vector<std::string> words = train({"--max-restarts", "1"});
  Child supervisor(dgc.folder(), words, "./built");
  REQUIRE(wait_until([&] { return dgc.rows("run").size() >= 5; }));
  fs::remove(dgc.folder() / "built");
  write_program(dgc.folder() / "built", "exit 1\n");
  REQUIRE(kill_child_after(dgc, supervisor, 5));
  CHECK(supervisor.wait() == 0);
  CHECK(dgc.final_hash("run") == truth);
}

TEST_CASE("what the user has to mend is not tried again") {
  const Program dgc;
  const Result wrong = dgc.run({"train", "tiny.json", "--set", "training.epochs=0", "--max-restarts", "3"});
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Contains("training.epochs") && !Contains("restart"));
  const Result missing = dgc.run(train({"--max-restarts", "3", "--launch", "no-such-launcher -n 4"}));
  CHECK(missing.code == 2);
  CHECK_THAT(missing.err, Contains("--launch: there is no program no-such-launcher on the PATH"));
  const Result folder = dgc.run(train({"--max-restarts", "3", "--launch", "/usr/bin/"}));
  CHECK(folder.code == 2);
  CHECK_THAT(folder.err, Contains("--launch: there is no program /usr/bin/"));
  write_program(dgc.folder() / "launcher", "");
  dgc.write("launcher", "#!/no/such/shell\n");
  const Result no_shell = dgc.run(train({"--max-restarts", "3", "--launch", "./launcher"}));
  CHECK(no_shell.code == 127);  // kChildNotStarted
  CHECK_THAT(no_shell.err, Contains("./launcher cannot be started: No such file or directory"));
  CHECK_FALSE(fs::exists(dgc.folder() / "run"));
}

TEST_CASE("a supervisor hands --quiet, --resume and --overwrite on to its training") {
  const Program dgc;
  const auto supervised = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"train", "tiny.json", "--out", "run", "--launch", "env SOME_VARIABLE=1"};
    words.insert(words.end(), more.begin(), more.end());
    return dgc.run(words);
  };
  const auto last_step = [&] { return dgc.rows("run").back().integer("step"); };
  const Result quiet = supervised({"--set", "training.max_steps=2", "--quiet"});
  CHECK(quiet.code == 0);
  CHECK(quiet.err.empty());
  CHECK(supervised({"--set", "training.max_steps=4"}).code == 2);  // there is a run
  CHECK(last_step() == 2);
  CHECK(supervised({"--set", "training.max_steps=4", "--resume"}).code == 0);
  CHECK(last_step() == 4);
  CHECK(supervised({"--set", "training.max_steps=3", "--overwrite"}).code == 0);
  CHECK(last_step() == 3);
}

TEST_CASE("a training that dies before it has looked at its folder does not go on with another run there") {
  const Program dgc;
  REQUIRE(dgc.run({"train", "tiny.json", "--out", "run"}).code == 0);
  const std::string rows = dgc.read("run/metrics.jsonl");
  dgc.write("flaky.sh", "#!/bin/sh\ntest -e tried || { touch tried; exit 1; }\nexec \"$@\"\n");
  fs::permissions(dgc.folder() / "flaky.sh", fs::perms::owner_all);
  const Result refused = dgc.run(train({"--max-restarts", "2", "--launch", "./flaky.sh"}));
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Contains("run already holds a run: add --resume"));
  CHECK(dgc.read("run/metrics.jsonl") == rows);
}

TEST_CASE("a supervisor sees its training end where it was started with SIGCHLD ignored") {
  const Program dgc;
  signal(SIGCHLD, SIG_IGN);
  Child supervisor(dgc.folder(), train({"--max-restarts", "3", "--set", "training.max_steps=2"}));
  signal(SIGCHLD, SIG_DFL);
  CHECK(supervisor.wait() == 0);
  CHECK(dgc.final_hash("run").size() == 16);
}

TEST_CASE("a supervisor under a launcher says how to turn them round") {
  const Program dgc;
  for (const char* variable : {"RANK", "WORLD_SIZE", "LOCAL_RANK"}) setenv(variable, "3", 1);
  setenv("RANK", "0", 1);
  setenv("LOCAL_RANK", "0", 1);
  setenv("DGC_RENDEZVOUS", "tcp://127.0.0.1:29400", 1);
  const Result result = dgc.run(train({"--max-restarts", "3"}));
  for (const char* variable : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "DGC_RENDEZVOUS"}) unsetenv(variable);
  CHECK(result.code == 2);
  CHECK_THAT(result.err, Contains("torchrun has started this process as one of 3") && Contains("mpirun -n 3"));
}

TEST_CASE("a supervisor leaves DGC_RENDEZVOUS to the ranks that its launcher starts") {
  const Program dgc;
  setenv("DGC_RENDEZVOUS", "tcp://127.0.0.1:29400", 1);
  const std::vector<std::string> short_run = {"--set", "training.max_steps=2", "--max-restarts", "1"};
  std::vector<std::string> launched = short_run;
  launched.insert(launched.end(), {"--launch", "env RANK=0 WORLD_SIZE=1 LOCAL_RANK=0"});
  const Result good = dgc.run(train(launched)), no_rank = dgc.run(long_run("other", short_run));
  unsetenv("DGC_RENDEZVOUS");
  INFO(good.err);
  CHECK(good.code == 0);
  CHECK(no_rank.code == 2);
  CHECK_THAT(no_rank.err, Contains("DGC_RENDEZVOUS is set, but") && !Contains("restart 1"));
}

TEST_CASE("a supervisor passes SIGINT, SIGTERM, SIGHUP and SIGUSR1 on, and starts nothing after them") {
  const Program dgc;
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGUSR1);
  Child supervisor(dgc.folder(), endless({"--max-restarts", "3"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  supervisor.send(signal);
  CHECK(supervisor.wait() == 130);
  CHECK_THAT(supervisor.err(), Contains("the state is saved, go on with --resume") && !Contains("restart"));
}

TEST_CASE("a training that is stopped itself is not started again") {
  const Program dgc;
  Child supervisor(dgc.folder(), endless({"--max-restarts", "3"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  pid_t child = 0;
  REQUIRE(wait_until([&] { return (child = child_of(supervisor.pid())) != 0; }));
  REQUIRE(kill(child, SIGTERM) == 0);
  CHECK(supervisor.wait() == 130);
  CHECK_THAT(supervisor.err(), Contains("the state is saved, go on with --resume") && !Contains("restart"));
}

TEST_CASE("a supervisor that is stopped while it pauses starts nothing more") {
  const Program dgc;
  Child supervisor(dgc.folder(), endless({"--max-restarts", "3"}));
  REQUIRE(kill_child_after(dgc, supervisor, 5));
  REQUIRE(wait_until([&] { return supervisor.err().find("restart 1 of 3 in 1 s") != std::string::npos; }));
  supervisor.send(SIGTERM);
  CHECK(supervisor.wait() == 130);
  const std::string said = supervisor.err(), banner = " x batch ";
  CHECK(said.find(banner) == said.rfind(banner));
}

TEST_CASE("what a launcher leaves to its supervisor, and ends, is not taken for the launcher") {
  const Program dgc;
  write_program(dgc.folder() / "launcher", "(sleep 0.1 &)\nsleep 1\ntouch done\n");
  CHECK(dgc.run(train({"--max-restarts", "3", "--launch", "./launcher"})).code == 0);
  CHECK(fs::exists(dgc.folder() / "done"));
}

TEST_CASE("a process that the shell had started before it became the supervisor is left alone") {
  const Program dgc;
  write_program(dgc.folder() / "shell", "sleep 100 &\necho $! > other\nexec \"$@\"\n");
  std::vector<std::string> words = train({"--max-restarts", "1"});
  words.insert(words.begin(), DGC_BINARY);
  Child supervisor(dgc.folder(), words, "./shell");
  REQUIRE(wait_until([&] { return !dgc.rows("run").empty(); }));
  const pid_t other = std::stoi(dgc.read("other"));
  pid_t training = 0;
  REQUIRE(wait_until([&] {
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", supervisor.pid()));
    for (pid_t child = 0; children >> child;) training = child != other ? child : training;
    return training != 0;
  }));
  REQUIRE(kill(training, SIGKILL) == 0);
  CHECK(supervisor.wait() == 0);
  CHECK_THAT(supervisor.err(), Contains("restart 1 of 1") && !Contains("left behind"));
  CHECK(kill(other, SIGKILL) == 0);
}

TEST_CASE("a launcher that is stopped before it has started anything has not done the training, whatever it says") {
  const Program dgc;
  write_program(dgc.folder() / "launcher", "trap 'exit 0' TERM\ntouch started\nwhile :; do sleep 0.05; done\n");
  Child supervisor(dgc.folder(), train({"--max-restarts", "3", "--launch", "./launcher"}));
  REQUIRE(wait_until([&] { return fs::exists(dgc.folder() / "started"); }));
  supervisor.send(SIGTERM);
  CHECK(supervisor.wait() == 130);
}

TEST_CASE("a supervisor says that what it has started stands still, and ends it all the same") {
  const Program dgc;
  write_program(dgc.folder() / "launcher", "kill -STOP $$\nsleep 1000\n");
  Child supervisor(dgc.folder(), train({"--max-restarts", "3", "--launch", "./launcher"}));
  REQUIRE(wait_until([&] { return Contains("stands still, stopped by signal 19").match(supervisor.err()); }));
  supervisor.send(SIGTERM);
  CHECK(supervisor.wait() == 128 + SIGTERM);
}

TEST_CASE("a stop reaches a training behind a shell that passes nothing on, however it ends") {
  const auto [script, code] = GENERATE(table<std::string, int>({
      {"\"$@\"\ntrue\n", 128 + SIGTERM},
      {"trap 'exit 1' TERM\n\"$@\" &\nwait $!\n", 1},
      {"timeout 1000 \"$@\"\ntrue\n", 128 + SIGTERM},
  }));
  CAPTURE(script);
  const Program dgc;
  write_program(dgc.folder() / "launcher", script);
  Child supervisor(dgc.folder(), endless({"--max-restarts", "3", "--launch", "./launcher"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() >= 2; }));
  supervisor.send(SIGTERM);
  CHECK(supervisor.wait() == code);
  CHECK_THAT(supervisor.err(), Contains("the launcher has ended; waiting until"));
  CHECK_THAT(dgc.read("run/log.txt"), Contains("the state is saved"));
}

TEST_CASE("a stop reaches an srun, which passes it on, behind a shell that does not") {
  const Program dgc;
  fs::copy_file("/bin/sh", dgc.folder() / "srun");
  write_program(dgc.folder() / "ranks",
                "trap 'touch stopped; exit 0' TERM\ntouch started\nfor i in $(seq 1000); do sleep 0.05; done\n");
  write_program(dgc.folder() / "launcher", "./srun ./ranks \"$@\"\ntrue\n");
  Child supervisor(dgc.folder(), train({"--max-restarts", "3", "--launch", "./launcher"}));
  REQUIRE(wait_until([&] { return fs::exists(dgc.folder() / "started"); }));
  supervisor.send(SIGTERM);
  CHECK(supervisor.wait() == 128 + SIGTERM);
  CHECK(fs::exists(dgc.folder() / "stopped"));
}

TEST_CASE("a stop reaches each training that a launcher below the first one starts anew") {
  const Program dgc;
  write_program(dgc.folder() / "inner", "for i in 1 2 3; do \"$@\"; done\n");
  write_program(dgc.folder() / "launcher", "./inner \"$@\"\ntrue\n");
  Child supervisor(dgc.folder(), endless({"--resume", "--max-restarts", "3", "--launch", "./launcher"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  supervisor.send(SIGTERM);
  CHECK(supervisor.wait() == 128 + SIGTERM);
  CHECK_THAT(dgc.read("run/log.txt"), Contains("the state is saved"));
}

TEST_CASE("a supervisor that ends says what its last launcher has left behind") {
  const Program dgc;
  write_program(dgc.folder() / "launcher", "sleep 1000 &\necho $! > left\nkill -KILL $$\n");
  const Result ended = dgc.run(train({"--launch", "./launcher"}));
  CHECK(ended.code == 128 + SIGKILL);
  CHECK_THAT(ended.err, Contains("the training was ended by signal 9 (Killed)\n") &&
                            Contains("the launcher has ended, and process " + dgc.read("left").substr(0, 3)));
  CHECK(kill(std::stoi(dgc.read("left")), SIGKILL) == 0);
}

TEST_CASE("a supervisor stops a run under mpirun so that it can save") {
  if (std::system("mpirun --version > /dev/null 2>&1") != 0) {
    WARN("skipped: there is no mpirun");
    return;
  }
  for (const char* variable : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(variable, "1", 1);
  const Program dgc;
  write_program(dgc.folder() / "launcher", "mpirun -n 1 \"$@\"\ntrue\n");
  const bool in_script = GENERATE(false, true);
  Child supervisor(dgc.folder(),
                   endless({"--max-restarts", "3", "--launch", in_script ? "./launcher" : "mpirun -n 1"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  supervisor.send(in_script ? SIGTERM : SIGINT);
  CHECK(supervisor.wait() == (in_script ? 128 + SIGTERM : 130));
  CHECK_THAT(supervisor.err(), Contains("the state is saved, go on with --resume") && !Contains("restart"));
}

TEST_CASE("two signals at once, as timeout and a closing terminal send them, stop a run under mpirun gently") {
  const Program dgc;
  write_mpirun(dgc);
  fs::copy_file("/bin/sh", dgc.folder() / "mpirun.openmpi");
  write_program(dgc.folder() / "script", "./mpirun.openmpi ./mpirun \"$@\"\ntrue\n");
  const std::string launcher = GENERATE("./mpirun", "env ./mpirun.openmpi ./mpirun", "./script");
  CAPTURE(launcher);
  Child supervisor(dgc.folder(), train({"--max-restarts", "3", "--launch", launcher}));
  REQUIRE(wait_until([&] { return fs::exists(dgc.folder() / "started"); }));
  supervisor.send(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(GENERATE(0, 200)));
  supervisor.send(launcher == "./script" ? SIGTERM : SIGINT);  // a shell that waits heeds no SIGINT
  CHECK(supervisor.wait() == (launcher == "./script" ? 128 + SIGTERM : 130));
  CHECK(text_of(dgc.folder() / "said") == "gently\n");
}

TEST_CASE("a second signal reaches the ranks of an mpirun that lost the first, and a third ends it") {
  const Program dgc;
  write_mpirun(dgc, 4);
  Child supervisor(dgc.folder(), train({"--max-restarts", "3", "--launch", "./mpirun"}));
  REQUIRE(wait_until([&] { return fs::exists(dgc.folder() / "started"); }));
  const std::vector<std::string> said = {"gently\n", "gently\ngently\n", "gently\ngently\nat once\n"};
  for (const std::string& text : said) {
    supervisor.send(SIGTERM);
    CHECK(wait_until([&] { return text_of(dgc.folder() / "said") == text; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // kSameSignal
  }
  CHECK(supervisor.wait() == 1);
}

TEST_CASE("an mpirun whose supervisor is killed is stopped gently") {
  const Program dgc;
  write_mpirun(dgc);
  fs::create_symlink("mpirun", dgc.folder() / "launcher");
  const std::string launcher = GENERATE("./mpirun", "./launcher");
  CAPTURE(launcher);
  Child supervisor(dgc.folder(), train({"--max-restarts", "3", "--launch", launcher}));
  REQUIRE(wait_until([&] { return fs::exists(dgc.folder() / "started"); }));
  supervisor.send(SIGKILL);
  CHECK(supervisor.wait() == 128 + SIGKILL);
  CHECK(wait_until([&] { return !text_of(dgc.folder() / "said").empty(); }));
  CHECK(text_of(dgc.folder() / "said") == "gently\n");
}

// It holds the lock of the run. Like torchrun, the launcher gives it a session of its own.
TEST_CASE("a rank that outlives its launcher has time to end, and is killed before the training is started again") {
  const Program dgc;
  const std::string truth = hash_of_an_undisturbed_run(dgc);
  write_program(dgc.folder() / "launcher", "setsid \"$@\" &\necho $! > rank\nwait $!\n");
  Child supervisor(dgc.folder(), train({"--max-restarts", "1", "--launch", "./launcher"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() >= 5; }));
  const pid_t launcher = child_of(supervisor.pid()), rank = std::stoi(dgc.read("rank"));
  REQUIRE(launcher != 0);
  REQUIRE(kill(rank, SIGSTOP) == 0);  // as one that a disk keeps waiting
  REQUIRE(kill(launcher, SIGKILL) == 0);
  const int code = supervisor.wait();
  INFO(supervisor.err());
  REQUIRE(code == 0);
  CHECK(dgc.final_hash("run") == truth);
  CHECK_THAT(supervisor.err(), Contains("restart 1 of 1") && Contains(fmt::format("left behind, process {};", rank)));
}

TEST_CASE("a training whose supervisor is killed saves and ends") {
  const Program dgc;
  Child supervisor(dgc.folder(), endless({"--max-restarts", "3"}));
  REQUIRE(wait_until([&] { return dgc.rows("run").size() > 3; }));
  const pid_t child = child_of(supervisor.pid());
  REQUIRE(child != 0);
  supervisor.send(SIGKILL);
  CHECK(supervisor.wait() == 128 + SIGKILL);
  CHECK(wait_until([&] { return is_zombie_or_gone(child); }));
  CHECK_THAT(supervisor.err(), Contains("the state is saved, go on with --resume"));
}

}  // namespace dgc

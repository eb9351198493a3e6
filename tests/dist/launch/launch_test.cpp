#include "dist/launch/launch.h"

#include <catch.hpp>
#include <map>

#include "dist/launch/launch_slurm.h"
#include "tensor/errors.h"

using namespace dgc;
using Catch::Contains;

namespace {

using Variables = std::map<std::string, std::string>;

Launch launched(const Variables& variables) {
  return read_launch([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end() || found->second.empty()) return {};
    return found->second;
  });
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kTorchrun = {
    {"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node7"}, {"MASTER_PORT", "29500"}};

const Variables kSlurm = {{"SLURM_PROCID", "3"},       {"SLURM_NTASKS", "4"},
                          {"SLURM_LOCALID", "1"},      {"SLURM_STEP_NODELIST", "gpu[03,07]"},
                          {"SLURM_JOB_ID", "1234567"}, {"SLURM_STEP_ID", "2"}};

const Variables kMpirun = {{"OMPI_COMM_WORLD_RANK", "2"},       {"OMPI_COMM_WORLD_SIZE", "6"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"},
                           {"PMIX_NAMESPACE", "20971521"},      {"PMIX_RANK", "2"}};

}  // namespace

TEST_CASE("without a launcher a process is alone", "[launch]") {
  const Launch alone = launched({});
  CHECK((alone.launcher == "alone" && alone.rank == 0 && alone.size == 1 && alone.local_rank == 0));
  // A shell or a batch script inside of an allocation is no task of a step.
  CHECK(launched({{"SLURM_NTASKS", "8"}}).size == 1);
  CHECK(launched({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}, {"SLURM_JOB_ID", "1"}}).size ==
        1);
  CHECK(launched({{"MASTER_ADDR", "node7"}}).size == 1);  // some sites set it in every shell
  CHECK(launched({{"RANK", ""}, {"WORLD_SIZE", ""}}).size == 1);
}

TEST_CASE("torchrun's variables", "[launch]") {
  const Launch launch = launched(kTorchrun);
  CHECK(launch.launcher == "torchrun");
  CHECK((launch.rank == 5 && launch.size == 8 && launch.local_rank == 1 && launch.local_size == 1 && !launch.mpi));
  CHECK(launched(with(kTorchrun, {{"LOCAL_WORLD_SIZE", "4"}})).local_size == 4);
  // One process alone, in a job whose variable is left over.
  const Variables alone = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}};
  CHECK(launched(alone).size == 1);
  CHECK(launch.meeting.url() == "tcp://node7:29500");
  CHECK(launch.run.empty());
  // torchrun itself listens at MASTER_PORT.
  const Launch agent = launched(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                 {"TORCHELASTIC_RUN_ID", "none"},
                                                 {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  CHECK(agent.meeting.port == 29501);
  CHECK(agent.run == "torchrun none");
  const auto last = with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}, {"MASTER_PORT", "65535"}});
  CHECK(launched(last).meeting.port == 1024);
  CHECK(launched(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).meeting.port == 29500);
  CHECK(launched({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}).size == 1);  // needs no address
}

TEST_CASE("Open MPI's variables", "[launch]") {
  const Launch launch = launched(kMpirun);
  CHECK(launch.launcher == "mpirun");
  CHECK((launch.rank == 2 && launch.size == 6 && launch.local_rank == 1 && launch.local_size == 3 && launch.mpi));
  CHECK(launch.run == "mpirun 20971521");
  CHECK_FALSE(launch.meeting.is_set());  // MPI needs none
  // For a build without MPI, where NCCL's id needs a way.
  CHECK(launched(with(kMpirun, {{"DGC_RENDEZVOUS", "tcp://node1:99"}})).meeting.url() == "tcp://node1:99");
  CHECK(launched(with(kMpirun, {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "98"}})).meeting.url() == "tcp://node1:98");
  const Launch one = launched(with(kMpirun, {{"OMPI_COMM_WORLD_RANK", "0"},
                                             {"OMPI_COMM_WORLD_SIZE", "1"},
                                             {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                             {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}));
  CHECK((one.size == 1 && one.launcher == "mpirun"));
}

TEST_CASE("MPI connects the ranks that mpirun, or an srun with PMIx, has started", "[launch]") {
  CHECK_FALSE(launched(kSlurm).mpi);
  CHECK(launched(with(kSlurm, {{"PMIX_RANK", "3"}})).mpi);
  // mpirun has started one torchrun per machine, or a script that hands its numbers on.
  CHECK_FALSE(launched(with(kMpirun, kTorchrun)).mpi);
  const Launch handed_on = launched(with(kMpirun, {{"RANK", "2"}, {"WORLD_SIZE", "6"}, {"LOCAL_RANK", "1"}}));
  CHECK((handed_on.mpi && handed_on.launcher == "torchrun" && !handed_on.meeting.is_set()));
}

TEST_CASE("SLURM's variables", "[launch]") {
  const Launch launch = launched(kSlurm);
  CHECK(launch.launcher == "slurm");
  CHECK((launch.rank == 3 && launch.size == 4 && launch.local_rank == 1));
  CHECK(launch.meeting.host == "gpu03");
  CHECK(launch.meeting.port == 20000 + (1234567 * 16 + 2) % 12000);
  CHECK(launch.run == "slurm 1234567.2 attempt 0");
  CHECK(launched(with(kSlurm, {{"SLURM_STEP_RESV_PORTS", "12345-12348"}})).meeting.port == 12345);
  CHECK(launched(with(kSlurm, {{"SLURM_STEP_RESV_PORTS", "12346,12999"}})).meeting.port == 12346);
  CHECK(launched(with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu03"}})).meeting.host == "127.0.0.1");
  CHECK(launched(with(kSlurm, {{"SLURM_STEP_NODELIST", ""},
                               {"SLURM_STEP_NUM_TASKS", "4"},
                               {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.4"}}))
            .meeting.host == "10.0.0.4");
  // A single interactive task in an allocation for more.
  CHECK(launched(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}})).size ==
        1);
}

TEST_CASE("how many ranks SLURM has started on a node", "[launch]") {
  const auto [list, node, expected] = GENERATE(table<std::string, int, int>(
      {{"4", 0, 4}, {"4(x2),3", 0, 4}, {"4(x2),3", 1, 4}, {"4(x2),3", 2, 3}, {"1,2,3(x12)", 13, 3}}));
  CAPTURE(list, node);
  CHECK(tasks_on_node(list, node) == expected);
  CHECK(launched(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", list}, {"SLURM_NODEID", std::to_string(node)}}))
            .local_size == expected);
}

TEST_CASE("the first machine of a SLURM node list", "[launch]") {
  const auto [list, name, only] = GENERATE(table<std::string, std::string, bool>({
      {"gpu1", "gpu1", true},
      {"gpu1,gpu2", "gpu1", false},
      {"gpu[03-05,07],login", "gpu03", false},
      {"gpu[07]", "gpu07", true},
      {"gpu[7,9]", "gpu7", false},
      {"rack[2-3]n[10-12]", "rack2n10", false},
      {"rack[2]n[10-12]-ib", "rack2n10-ib", false},
      {"a-b.c", "a-b.c", true},
  }));
  CAPTURE(list);
  CHECK(first_host(list).name == name);
  CHECK(first_host(list).only == only);
}

TEST_CASE("who has a say before whom", "[launch]") {
  // torchrun started by srun: SLURM counts the machines, torchrun the ranks.
  CHECK(launched(with(kSlurm, kTorchrun)).rank == 5);
  // mpirun inside of an allocation: srun has started its daemons, one per machine.
  CHECK(launched(with(kSlurm, kMpirun)).rank == 2);
  CHECK(launched(with(with(kSlurm, kMpirun), kTorchrun)).rank == 5);
  // MASTER_ADDR of a job script goes before what SLURM lets us guess, DGC_RENDEZVOUS before all.
  const Variables master = with(kSlurm, {{"MASTER_ADDR", "node9"}, {"MASTER_PORT", "1234"}});
  CHECK(launched(master).meeting.url() == "tcp://node9:1234");
  CHECK(launched(with(master, {{"DGC_RENDEZVOUS", "tcp://[fe80::1]:99"}})).meeting.host == "fe80::1");
  CHECK(launched(with(kTorchrun, {{"DGC_RENDEZVOUS", "file:///scratch/run 7"}})).meeting.path == "/scratch/run 7");
  for (const char* url : {"tcp://[fe80::1]:99", "tcp://10.1.2.3:65535", "file:///a/b"}) {
    CHECK(launched(with(kTorchrun, {{"DGC_RENDEZVOUS", url}})).meeting.url() == url);
  }
}

TEST_CASE("variables that cannot be used are named", "[launch]") {
  const auto [variables, message] = GENERATE_COPY(table<Variables, std::string>({
      {{{"RANK", "0"}}, "WORLD_SIZE is not set"},
      {{{"WORLD_SIZE", "2"}}, "RANK is not set"},
      {{{"LOCAL_RANK", "2"}}, "WORLD_SIZE is not set"},
      {with(kTorchrun, {{"LOCAL_RANK", ""}}), "LOCAL_RANK is not set"},
      {with(kTorchrun, {{"RANK", "8"}}), "RANK=8 contradicts WORLD_SIZE=8"},
      {with(kTorchrun, {{"LOCAL_RANK", "9"}}), "LOCAL_RANK=9 contradicts WORLD_SIZE=8"},
      {with(kTorchrun, {{"LOCAL_WORLD_SIZE", "1"}}), "LOCAL_RANK=1 contradicts LOCAL_WORLD_SIZE=1"},
      {with(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE=9 contradicts WORLD_SIZE=8"},
      {with(kTorchrun, {{"RANK", "-1"}}), "RANK=-1"},
      {with(kTorchrun, {{"RANK", "1x"}}), "RANK=1x"},
      {with(kTorchrun, {{"WORLD_SIZE", "0"}}), "WORLD_SIZE=0"},
      {with(kTorchrun, {{"WORLD_SIZE", "99999999999999999999"}}), "WORLD_SIZE=9999"},
      {with(kTorchrun, {{"MASTER_ADDR", ""}}), "MASTER_ADDR is not"},
      {with(kTorchrun, {{"MASTER_PORT", ""}}), "MASTER_PORT is not"},
      {with(kTorchrun, {{"MASTER_PORT", "65536"}}), "MASTER_PORT=65536"},
      {with(kTorchrun, {{"MASTER_ADDR", ""}, {"MASTER_PORT", ""}}), "neither DGC_RENDEZVOUS nor MASTER_ADDR"},
      {with(kMpirun, {{"OMPI_COMM_WORLD_RANK", ""}}), "OMPI_COMM_WORLD_RANK is not set"},
      {with(kMpirun, {{"OMPI_COMM_WORLD_SIZE", ""}}), "OMPI_COMM_WORLD_SIZE is not set"},
      {with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_RANK", ""}}), "OMPI_COMM_WORLD_LOCAL_RANK is not set"},
      {with(kMpirun, {{"OMPI_COMM_WORLD_RANK", "6"}}), "OMPI_COMM_WORLD_RANK=6 contradicts OMPI_COMM_WORLD_SIZE=6"},
      {with(kMpirun, {{"OMPI_COMM_WORLD_SIZE", "x"}}), "OMPI_COMM_WORLD_SIZE=x"},
      {with(kMpirun, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}), "contradicts OMPI_COMM_WORLD_LOCAL_SIZE=1"},
      {with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "4(x"}, {"SLURM_NODEID", "0"}}), "SLURM_STEP_TASKS_PER_NODE"},
      {with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "4"}, {"SLURM_NODEID", "1"}}),
       "SLURM_STEP_TASKS_PER_NODE=4 does not"},
      {with(kSlurm, {{"SLURM_PROCID", ""}}), "SLURM_PROCID is not set"},
      {with(kSlurm, {{"SLURM_LOCALID", ""}}), "SLURM_LOCALID is not set"},
      {with(kSlurm, {{"SLURM_NTASKS", ""}}), "SLURM_NTASKS is not set"},
      {with(kSlurm, {{"SLURM_PROCID", "4"}}), "SLURM_PROCID=4 contradicts SLURM_NTASKS=4"},
      {with(kSlurm, {{"SLURM_JOB_ID", ""}}), "SLURM_JOB_ID is not set"},
      {with(kSlurm, {{"SLURM_STEP_NODELIST", "gpu[1-"}}), "SLURM_STEP_NODELIST=gpu[1-"},
      {with(kSlurm, {{"SLURM_STEP_RESV_PORTS", "many"}}), "SLURM_STEP_RESV_PORTS=many"},
      {{{"DGC_RENDEZVOUS", "tcp://a:1"}}, "DGC_RENDEZVOUS is set, but"},
      {with(kTorchrun, {{"DGC_SECRET_FILE", "/no/such/file"}}),
       "DGC_SECRET_FILE names a file that cannot be opened: No such"},
      {with(kTorchrun, {{"DGC_SECRET_FILE", "correct/horse/battery/staple"}}),
       "DGC_SECRET_FILE names a file that cannot"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "a:1"}}), "DGC_RENDEZVOUS=a:1"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "tcp://a"}}), "DGC_RENDEZVOUS=tcp://a"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "tcp://:1"}}), "DGC_RENDEZVOUS=tcp://:1"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "tcp://[]:1"}}), "lacks the host"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "tcp://a:0"}}), "DGC_RENDEZVOUS=tcp://a:0: port=0"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "tcp://::1:7"}}), "brackets"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "file://x"}}), "file:///path"},
      {with(kTorchrun, {{"DGC_RENDEZVOUS", "file:///x/"}}), "names no file"},
  }));
  CAPTURE(message);
  CHECK_THROWS_WITH(launched(variables), Contains(message));
  CHECK_THROWS_AS(launched(variables), UserError);
}

TEST_CASE("what to do without NCCL depends on who has started how many ranks", "[launch]") {
  Launch launch;
  CHECK(without_nccl(launch) == "set exchange.communicator to \"auto\"");
  launch.size = 2;
  CHECK(without_nccl(launch) == "start the ranks with mpirun or srun --mpi=pmix");
  launch.mpi = true;
  CHECK(without_nccl(launch) == "set exchange.communicator to \"auto\" or \"mpi\"");
}

TEST_CASE("ranks find their GPU", "[launch]") {
  Launch launch;
  launch.size = 8;
  launch.rank = 6;
  launch.local_rank = 2;
  CHECK(choose_gpu(launch, 4) == 2);
  CHECK(choose_gpu(launch, 3) == 2);
  CHECK(choose_gpu(launch, 1) == 0);  // shown only its own
  CHECK_THROWS_WITH(choose_gpu(launch, 0), Contains("there is no GPU here") && Contains("mpirun"));
  launch.mpi = true;
  CHECK_THROWS_WITH(choose_gpu(launch, 0),
                    "there is no GPU here, and NCCL connects GPUs only: set "
                    "exchange.communicator to \"auto\" or \"mpi\"");
  CHECK_THROWS_WITH(choose_gpu(launch, 2), Contains("number 3") && Contains("2 GPUs") && Contains("workers_per_rank"));
}

#include "tensor/control_groups.h"

#include <catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "tensor/cores.h"
#include "tests/support/new_folder.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

// A root folder with the files that a test writes.
class Root {
 public:
  Root() : path_(test::new_folder("dgc_control_groups")) {}
  ~Root() { fs::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

TEST_CASE("control groups: the tightest limit of a group and those around it holds", "[tensor]") {
  const Root root;
  root.write("proc/self/cgroup", "0::/pods/mine\n");
  root.write("sys/fs/cgroup/pods/mine/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/pods/cpu.max", "250000 100000\n");
  CHECK(processor_limit(root.path()) == 2.5);
  root.write("sys/fs/cgroup/pods/mine/cpu.max", "50000 100000\n");
  CHECK(processor_limit(root.path()) == 0.5);
}

TEST_CASE("control groups: version 1, as in a container that sees its own group as the outermost", "[tensor]") {
  const Root root;
  root.write("proc/self/cgroup",
             "12:cpuset:/docker/c0ffee\n4:cpu,cpuacct:/docker/c0ffee\n3:memory:/docker/c0ffee\n0::/\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "900\n");
  root.write("sys/fs/cgroup/memory/memory.stat",
             "cache 5\nactive_file 1\ntotal_active_file 20\ntotal_inactive_file 300\n");
  CHECK(processor_limit(root.path()) == 4);
  CHECK(memory_left(root.path()) == 1000 - (900 - 320));
}

TEST_CASE("control groups: memory in version 2", "[tensor]") {
  const Root root;
  root.write("proc/self/cgroup", "0::/box\n");
  root.write("sys/fs/cgroup/box/memory.max", "max\n");
  root.write("sys/fs/cgroup/box/memory.current", "700\n");
  CHECK_FALSE(memory_left(root.path()));
  root.write("sys/fs/cgroup/box/memory.max", "800\n");
  CHECK(memory_left(root.path()) == 100);
  root.write("sys/fs/cgroup/box/memory.stat",
             "anon 400\nfile 300\nactive_file 50\ninactive_file 120\nslab_reclaimable 30\n");
  CHECK(memory_left(root.path()) == 300);
  root.write("sys/fs/cgroup/box/memory.max", "200\n");
  CHECK(memory_left(root.path()) == 0);
}

TEST_CASE("control groups: no limit where none is told, or where it makes no sense", "[tensor]") {
  const Root root;
  CHECK_FALSE(processor_limit(root.path()));
  CHECK_FALSE(memory_left(root.path()));
  root.write("proc/self/cgroup", "no colon\n4:cpu:/a/b\n3:memory:/a/b\n0::/a/b\n");
  root.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/a/b/cpu.max", "100000 0\n");
  root.write("sys/fs/cgroup/a/cpu.max", "");
  root.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "much\n");
  root.write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "7\n");
  CHECK_FALSE(processor_limit(root.path()));
  CHECK_FALSE(memory_left(root.path()));
  root.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");  // version 1's "none"
  CHECK(memory_left(root.path()).value() > size_t{1} << 60);
}

TEST_CASE("cores: this process may use one at least, and no more than the machine has", "[tensor]") {
  CHECK(usable_cores() >= 1);
  CHECK(usable_cores() <= machine_cores());
}

}  // namespace dgc

#include "tensor/control_groups.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <vector>

namespace dgc {
namespace {

namespace fs = std::filesystem;

struct Group {
  fs::path folder;
  bool version_2 = false;
};

// The process's group for this controller, and those around it, whose limits hold as well. In a container some of the
// folders are not there, and its own group is the outermost.
std::vector<Group> groups_of(const fs::path& root, const std::string& controller) {
  std::vector<Group> groups;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:cpu,cpuacct:/path" in version 1, "0::/path" in version 2
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool version_2 = controllers == ",,";
    if (!version_2 && controllers.find("," + controller + ",") == std::string::npos) continue;
    const fs::path mounted = root / (version_2 ? "sys/fs/cgroup" : "sys/fs/cgroup/" + controller);
    for (fs::path group = line.substr(second + 1);; group = group.parent_path()) {
      groups.push_back({mounted / group.relative_path(), version_2});
      if (!group.has_relative_path()) break;
    }
  }
  return groups;
}

// The words of a file; none where it cannot be read.
std::vector<std::string> words_of(const fs::path& path) {
  std::ifstream file(path);
  std::vector<std::string> words;
  for (std::string word; file >> word;) words.push_back(word);
  return words;
}

std::optional<double> number_in(const std::vector<std::string>& words, size_t at) {
  double number = 0;
  if (at >= words.size()) return {};
  const std::string& word = words[at];
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size()) return {};  // "max"
  return number;
}

std::optional<double> number_in(const fs::path& path) { return number_in(words_of(path), 0); }

// What the system holds of files, and would give back.
double reclaimable(const Group& group) {
  const std::vector<std::string> words = words_of(group.folder / "memory.stat");
  const std::string prefix = group.version_2 ? "" : "total_";
  double bytes = 0;
  for (size_t i = 0; i + 1 < words.size(); i += 2) {
    const bool counts = words[i] == prefix + "active_file" || words[i] == prefix + "inactive_file" ||
                        words[i] == prefix + "slab_reclaimable";  // version 2 alone has it
    if (counts) bytes += number_in(words, i + 1).value_or(0);
  }
  return bytes;
}

void lower(std::optional<double>& least, double value) { least = std::min(least.value_or(value), value); }

}  // namespace

std::optional<double> processor_limit(const fs::path& root) {
  std::optional<double> least;
  for (const Group& group : groups_of(root, "cpu")) {
    std::optional<double> quota, period;  // microseconds; a quota of -1 is none
    if (group.version_2) {
      const std::vector<std::string> words = words_of(group.folder / "cpu.max");
      quota = number_in(words, 0);
      period = number_in(words, 1);
    } else {
      quota = number_in(group.folder / "cpu.cfs_quota_us");
      period = number_in(group.folder / "cpu.cfs_period_us");
    }
    if (quota && period && *quota > 0 && *period > 0) lower(least, *quota / *period);
  }
  return least;
}

std::optional<size_t> memory_left(const fs::path& root) {
  std::optional<double> least;
  for (const Group& group : groups_of(root, "memory")) {
    const auto limit = number_in(group.folder / (group.version_2 ? "memory.max" : "memory.limit_in_bytes"));
    const auto used = number_in(group.folder / (group.version_2 ? "memory.current" : "memory.usage_in_bytes"));
    if (limit && used) lower(least, std::max(0.0, *limit - (*used - reclaimable(group))));
  }
  if (!least) return {};
  return static_cast<size_t>(std::min(*least, 0x1p62));
}

}  // namespace dgc

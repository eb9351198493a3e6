#pragma once

#include <cstdlib>
#include <fstream>
#include <mutex>
#include <set>
#include <string>

namespace dgc::ptx {

// Appends the name of each entry that is launched to the file that DGC_PTX_LAUNCHED names, where it is set; other tests
// may append at the same time.
class LaunchedEntries {
 public:
  void note(const std::string& entry) {
    if (file_ == nullptr) return;
    const std::scoped_lock lock(mutex_);
    if (names_.insert(entry).second) std::ofstream(file_, std::ios::app) << entry + "\n";
  }

 private:
  const char* file_ = std::getenv("DGC_PTX_LAUNCHED");
  std::set<std::string> names_;
  std::mutex mutex_;
};

}  // namespace dgc::ptx

#include "tools/report/follow_report.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "run/file_io.h"
#include "tensor/errors.h"
#include "tensor/printable.h"
#include "tools/report/report_data.h"
#include "tools/report/report_page.h"
#include "train/ranks/interrupt.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

// Size and time of each run's metrics, by which a look knows what is new.
using Stamp = std::pair<uintmax_t, fs::file_time_type>;

std::vector<Stamp> stamps(const std::vector<fs::path>& runs) {
  std::vector<Stamp> all;
  for (const fs::path& run : runs) {
    std::error_code no_size, no_time;
    const fs::path file = run / kMetricsFile;
    all.emplace_back(fs::file_size(file, no_size), fs::last_write_time(file, no_time));
  }
  return all;
}

class Follower {
 public:
  Follower(const std::vector<fs::path>& runs, fs::path out, std::chrono::milliseconds every)
      : runs_(runs), out_(std::move(out)), every_(every), seen_(runs.size()), data_(runs.size()) {}

  std::vector<RunGroup> follow() {
    require_writable(out_);
    while (!look() && !interrupted()) wait();
    if (!groups_.empty()) write_file(out_, report_page(groups_));
    if (!have_ended()) throw Interrupted();
    return std::move(groups_);
  }

 private:
  bool have_ended() const {
    return std::ranges::all_of(data_, [](const std::optional<RunData>& data) { return data && data->has_ended(); });
  }

  // Returns whether all runs have ended.
  bool look() {
    const std::vector<Stamp> now = stamps(runs_);
    bool changed = false;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const bool had = data_[i].has_value();
      if (had && now[i] == seen_[i]) continue;
      data_[i] = read(runs_[i]);
      changed = changed || had || data_[i];
    }
    seen_ = now;
    if (!changed) return have_ended();
    std::vector<RunData> all;
    for (const std::optional<RunData>& data : data_) {
      if (data) all.push_back(*data);
    }
    if (all.empty()) return false;
    groups_ = group_runs(std::move(all));
    if (have_ended()) return true;
    const auto reload_s = std::chrono::ceil<std::chrono::seconds>(every_).count();
    write_file(out_, report_page(groups_, static_cast<int>(reload_s)));
    return false;
  }

  std::optional<RunData> read(const fs::path& run) {
    try {
      RunData data = read_run(run);
      problems_.erase(run);
      return data;
    } catch (const UserError& error) {
      std::string& told = problems_[run];
      if (told != error.what()) spdlog::info("waiting for a run: {}", printable(error.what()));
      told = error.what();
      return std::nullopt;
    }
  }

  // A signal ends the wait early.
  void wait() const {
    constexpr std::chrono::milliseconds kSlice(50);
    for (auto left = every_; left.count() > 0 && !interrupted(); left -= kSlice) {
      std::this_thread::sleep_for(std::min(left, kSlice));
    }
  }

  const std::vector<fs::path>& runs_;
  fs::path out_;
  std::chrono::milliseconds every_;
  std::vector<Stamp> seen_;                   // at the last look
  std::vector<std::optional<RunData>> data_;  // of each run then; nothing: it could not be read, and is tried again
  std::vector<RunGroup> groups_;
  std::map<fs::path, std::string> problems_;
};

}  // namespace

std::vector<RunGroup> follow_report(const std::vector<fs::path>& runs, const fs::path& out,
                                    std::chrono::milliseconds every) {
  const InterruptGuard guard;
  return Follower(runs, out, every).follow();
}

}  // namespace dgc

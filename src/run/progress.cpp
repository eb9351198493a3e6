#include "run/progress.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "run/log.h"
#include "run/number_text.h"

namespace dgc {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

std::vector<std::string> words(const ProgressState& state, double seconds_left) {
  std::vector<std::string> words = {
      fmt::format("epoch {}/{}", state.epoch, state.epochs),
      fmt::format("step {}/{}", state.step, state.steps),
      fmt::format("loss {:#.3g}", std::isnan(state.loss) ? std::fabs(state.loss) : state.loss),
      fmt::format("{} {}/s", rate_text(state.samples_per_s), state.samples),
  };
  if (seconds_left >= 0) words.push_back(duration_text(seconds_left) + " left");
  return words;
}

std::string paint(const std::string& text, bool color) { return color ? "\x1b[36m" + text + "\x1b[0m" : text; }

std::string repeat(std::string_view what, int64_t times) {
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += what;
  return out;
}

}  // namespace

ProgressStyle detect_progress_style() {
  ProgressStyle style;
  const auto term = environment("TERM");
  style.bar = isatty(STDERR_FILENO) == 1 && !term.empty() && term != "dumb";
  style.color = style.bar && environment("NO_COLOR").empty();  // no-color.org: any text but an empty one counts
  return style;
}

int terminal_columns() {
  constexpr int kUnknown = 80;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUnknown;
}

std::string progress_line(const ProgressState& state, double seconds_left) {
  return fmt::format("{}", fmt::join(words(state, seconds_left), "  "));
}

std::string progress_bar(const ProgressState& state, double seconds_left, const ProgressStyle& style) {
  constexpr int64_t kNarrowestBar = 8, kWidestBar = 30;
  const int64_t room = style.columns - 1;  // a full last column would wrap on some terminals
  auto parts = words(state, seconds_left);
  auto text = [&] { return fmt::format("{}", fmt::join(parts, "  ")); };

  const int64_t bar = std::min(kWidestBar, room - static_cast<int64_t>(text().size()) - 2);
  if (bar >= kNarrowestBar) {
    const double share = state.steps > 0 ? static_cast<double>(state.step) / static_cast<double>(state.steps) : 0.0;
    const auto full = static_cast<int64_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(bar));
    return paint(repeat("━", full), style.color) + repeat("╌", bar - full) + "  " + text();
  }
  while (!parts.empty() && static_cast<int64_t>(text().size()) > room) parts.pop_back();
  return text();
}

Progress::Progress(const ProgressStyle& style) : style_(style) {}

Progress::~Progress() {
  if (style_.bar) show_status_line("");
}

void Progress::update(const ProgressState& state) {
  const auto now = Clock::now();
  const bool first = first_step_ < 0;
  if (first) {  // the first step of a process builds primitives and is slow, so time counts from its end
    first_step_ = state.step;
    first_time_ = now;
  }
  const double pause = style_.bar ? 0.1 : style_.seconds_between_lines;
  const bool last = state.step == state.steps;
  if (!first && !last && std::chrono::duration<double>(now - last_shown_).count() < pause) return;
  last_shown_ = now;
  if (style_.bar) {
    style_.columns = terminal_columns();
    show_status_line(progress_bar(state, seconds_left(state), style_));
  } else {
    spdlog::info("{}", progress_line(state, seconds_left(state)));
  }
}

double Progress::seconds_left(const ProgressState& state) const {
  const auto done = static_cast<double>(state.step - first_step_);
  if (done <= 0) return -1;
  const double seconds = std::chrono::duration<double>(Clock::now() - first_time_).count();
  return seconds / done * static_cast<double>(state.steps - state.step);
}

}  // namespace dgc

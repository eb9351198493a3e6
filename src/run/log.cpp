#include "run/log.h"

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <mutex>

#include "tensor/errors.h"
#include "tensor/printable.h"

namespace dgc {
namespace {

constexpr const char* kEraseLine = "\r\x1b[K";

// The sink draws the status line, because only the writer to the terminal can keep that line at the bottom.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void show_status(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (!should_log(spdlog::level::info) || (line.empty() && status_.empty())) return;
    status_ = line;
    print(kEraseLine + status_);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string text = printable({message.payload.data(), message.payload.size()});
    if (message.level == spdlog::level::warn) text = "warning: " + text;
    if (message.level >= spdlog::level::err) text = "error: " + text;
    print(status_.empty() ? text + "\n" : kEraseLine + text + "\n" + status_);
  }
  void flush_() override { std::fflush(stderr); }

 private:
  static void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stderr); }

  std::string status_;
};

// Makes messages in the log file printable, because people view the log file on a terminal too.
class PrintablePayload final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& to) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    to.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<spdlog::custom_flag_formatter> clone() const override { return std::make_unique<PrintablePayload>(); }
};

std::shared_ptr<StderrSink> stderr_sink() {
  static const auto sink = std::make_shared<StderrSink>();
  return sink;
}

}  // namespace

void log_to_stderr() {
  auto logger = std::make_shared<spdlog::logger>("dgc", stderr_sink());
  logger->set_level(spdlog::level::debug);  // only the log file takes debug messages
  stderr_sink()->set_level(spdlog::level::info);
  logger->flush_on(spdlog::level::trace);
  // The usual error is a full disk under the log file. spdlog goes on with the other sinks and the next message.
  logger->set_error_handler([told = std::make_shared<std::once_flag>()](const std::string& what) {
    std::call_once(*told, [&] {
      const std::string text = what + "; the run goes on";
      stderr_sink()->log({"dgc", spdlog::level::warn, text});
    });
  });
  spdlog::set_default_logger(logger);
}

void quiet_stderr() { stderr_sink()->set_level(spdlog::level::warn); }

RunLog::RunLog(const std::filesystem::path& run) {
  const auto path = run / kLogFile;
  try {
    sink_ = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
  } catch (const spdlog::spdlog_ex&) {
    throw_user_error("{}: cannot be opened for writing; is the directory there, and yours?", path.string());
  }
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintablePayload>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %*");
  sink_->set_formatter(std::move(formatter));
  spdlog::default_logger()->sinks().push_back(sink_);
}

RunLog::~RunLog() {
  std::erase(spdlog::default_logger()->sinks(), sink_);
  try {
    sink_->flush();
  } catch (const spdlog::spdlog_ex& error) {  // the disk is full
    spdlog::warn("{}; the end of the log is lost", error.what());
  }
}

void show_status_line(const std::string& line) { stderr_sink()->show_status(line); }

}  // namespace dgc

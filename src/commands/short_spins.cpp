#include "commands/short_spins.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace dgc {
namespace {

std::vector<std::string> arguments_of_this_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

}  // namespace

void restart_with_short_spins() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  std::error_code error;
  // The program is started by its path and not by the link, from which the process would get the name "exe".
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  std::vector<std::string> words = arguments_of_this_process();
  if (error || words.empty()) return;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  setenv("GOMP_SPINCOUNT", "1000", 1);
  execv(program.c_str(), argv.data());  // returns only when it fails; then this process goes on with long spins
}

}  // namespace dgc

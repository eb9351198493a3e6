// What the documents say, held against the program: links, command lines, paths, fields of metrics.jsonl, messages.
#include <algorithm>
#include <catch.hpp>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "commands/app.h"
#include "config/enum_names.h"
#include "paths.h"
#include "run/metrics.h"
#include "tests/commands/child.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;
using Strings = std::vector<std::string>;
using test::text_of;

const fs::path kSource = DGC_SOURCE_DIR;

std::vector<fs::path> pages() {
  std::vector<fs::path> all = {kSource / "README.md", kSource / "CONTRIBUTING.md", kSource / "CHANGELOG.md",
                               kSource / "THIRD_PARTY.md"};
  for (const char* folder : {"docs", "configs", "data", "bench"}) {
    for (const auto& entry : fs::directory_iterator(kSource / folder)) {
      if (entry.path().extension() == ".md") all.push_back(entry.path());
    }
  }
  return all;
}

// A page in pieces: its text, and the lines of its blocks of code.
struct Page {
  std::string prose;  // a paragraph per line
  Strings code;       // a command per line: what ends in a backslash goes on
};

Page read(const std::string& markdown) {
  Page page;
  std::istringstream lines(markdown);
  bool fenced = false, continued = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      fenced = !fenced;
    } else if (fenced || line.starts_with("    ")) {
      const bool goes_on = line.ends_with("\\");
      if (goes_on) line.pop_back();
      if (continued) {
        page.code.back() += line;
      } else {
        page.code.push_back(line);
      }
      continued = goes_on;
    } else {
      page.prose += line.empty() ? "\n" : line + " ";
    }
  }
  return page;
}

Strings matches(const std::string& text, const std::regex& pattern) {
  Strings found;
  for (std::sregex_iterator match(text.begin(), text.end(), pattern), end; match != end; ++match) {
    found.push_back((*match)[1]);
  }
  return found;
}

Strings inline_code(const Page& page) { return matches(page.prose, std::regex("`([^`\n]+)`")); }

// The simple commands of a shell's line, as words.
std::vector<Strings> simple_commands(const std::string& line) {
  std::vector<Strings> commands(1);
  std::string word;
  bool in_word = false;
  char quote = '\0';
  const auto end_word = [&] {
    if (in_word) commands.back().push_back(word);
    word.clear();
    in_word = false;
  };
  for (const char c : line) {
    if (quote != '\0') {
      if (c == quote) {
        quote = '\0';
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '#' && !in_word) {
      break;
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      end_word();
    } else if (std::string(";&|<>()").find(c) != std::string::npos) {
      end_word();
      commands.emplace_back();
      if (c == '<' || c == '>') commands.back().push_back("a file");  // and no command
    } else {
      word += c;
      in_word = true;
    }
  }
  end_word();
  return commands;
}

// What follows dgc where a simple command runs it, by itself or by a launcher.
std::optional<Strings> arguments_of_dgc(const Strings& words) {
  static const std::set<std::string> kLaunchers = {"mpirun", "srun", "torchrun",     "nsys",
                                                   "ncu",    "sudo", "/usr/bin/time"};
  static const std::regex assignment("[A-Z_]+=.*");
  const auto first =
      std::ranges::find_if_not(words, [](const std::string& w) { return std::regex_match(w, assignment); });
  if (first == words.end()) return std::nullopt;
  const auto is_dgc = [](const std::string& word) { return word == "dgc" || word.ends_with("/dgc"); };
  const auto dgc = kLaunchers.contains(*first) ? std::find_if(first, words.end(), is_dgc) : first;
  if (dgc == words.end() || !is_dgc(*dgc)) return std::nullopt;
  return Strings(dgc + 1, words.end());
}

std::vector<Strings> calls_of_dgc(const std::string& line) {
  std::vector<Strings> calls;
  for (const Strings& words : simple_commands(line)) {
    if (auto arguments = arguments_of_dgc(words)) calls.push_back(std::move(*arguments));
  }
  return calls;
}

// What is wrong with a whole command line; empty: nothing.
std::string complaint(Strings arguments) {
  struct Understood {};
  const auto app = make_app();
  app->parse_complete_callback([] { throw Understood(); });  // comes before the commands' own callbacks
  std::ranges::reverse(arguments);
  try {
    app->parse(std::move(arguments));
  } catch (const Understood&) {
  } catch (const CLI::Success&) {  // --help, --version
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return "";
}

// What is wrong with a mention such as `dgc train --resume`, from which something may be left out.
std::string complaint_of_mention(const Strings& arguments) {
  const auto app = make_app();
  const CLI::App* command = app.get();
  for (const std::string& argument : arguments) {
    if (argument.starts_with("-")) {
      if (command->get_option_no_throw(argument.substr(0, argument.find('='))) == nullptr) {
        return command->get_name() + " has no option " + argument;
      }
    } else if (!command->get_subcommands(nullptr).empty() && std::islower(argument[0]) != 0) {  // not COMMAND, ...
      const auto subs = command->get_subcommands(nullptr);
      const auto sub = std::ranges::find(subs, argument, [](const CLI::App* one) { return one->get_name(); });
      if (sub == subs.end()) return command->get_name() + " has no command " + argument;
      command = *sub;
    }
  }
  return "";
}

// As GitHub makes the anchor of a heading.
std::string anchor(const std::string& heading) {
  std::string slug;
  for (const char c : heading) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0 || c == '-' || c == '_') slug += static_cast<char>(std::tolower(letter));
    if (c == ' ') slug += '-';
  }
  return slug;
}

bool has_anchor(const fs::path& page, const std::string& wanted) {
  std::istringstream lines(text_of(page));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#") && anchor(line.substr(line.find(' ') + 1)) == wanted) return true;
  }
  return false;
}

// Of field names, the kinds of rows that have them.
using Fields = std::map<std::string, std::set<std::string>>;

Fields fields_of(const std::vector<Row>& rows) {
  Fields fields;
  for (const Row& row : rows) {
    for (const auto& [name, value] : row.fields()) fields[name].insert(*row.text("kind"));
  }
  return fields;
}

// Every message of the program is in here, as it stands in the source: with {} for what differs.
std::string all_source() {
  std::string text;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "src")) {
    if (entry.is_regular_file()) text += text_of(entry.path());
  }
  std::string joined;  // of literals that stand one behind the other
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') {
      const size_t next = text.find_first_not_of(" \n", i + 1);
      if (next != std::string::npos && text[next] == '"' && text.substr(i, next - i).find('\n') != std::string::npos) {
        i = next;
        continue;
      }
    }
    const bool escape = text[i] == '\\' && i + 1 < text.size() && text[i + 1] == '"';
    joined += escape ? text[++i] : text[i];
  }
  return joined;
}

Strings split(const std::string& text, const std::string& separator) {
  Strings parts;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size()) {
    parts.push_back(text.substr(begin, end - begin));
  }
  parts.push_back(text.substr(begin));
  return parts;
}

}  // namespace

TEST_CASE("every link between the documents leads somewhere") {
  int links = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& link : matches(read(text_of(page)).prose, std::regex(R"(\]\(([^)\s]+)\))"))) {
      if (link.starts_with("https://") || link.starts_with("http://")) continue;
      CAPTURE(page, link);
      const std::string file = link.substr(0, link.find('#'));
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      CHECK(fs::exists(target));
      if (link.find('#') != std::string::npos) CHECK(has_anchor(target, link.substr(link.find('#') + 1)));
      ++links;
    }
  }
  CHECK(links > 30);
}

TEST_CASE("every dgc command line in the documents is one that dgc understands") {
  int whole = 0, mentioned = 0;
  for (const fs::path& page : pages()) {
    const Page pieces = read(text_of(page));
    for (const std::string& line : pieces.code) {
      for (const Strings& arguments : calls_of_dgc(line)) {
        const std::string wrong = complaint(arguments);
        CAPTURE(page, line, wrong);
        CHECK(wrong.empty());
        ++whole;
      }
    }
    for (const std::string& code : inline_code(pieces)) {
      for (const Strings& arguments : calls_of_dgc(code)) {
        const std::string wrong = complaint_of_mention(arguments);
        CAPTURE(page, code, wrong);
        CHECK(wrong.empty());
        ++mentioned;
      }
    }
  }
  CHECK(whole > 30);
  CHECK(mentioned > 30);
}

TEST_CASE("every example in a command's help is one that dgc understands") {
  const auto app = make_app();
  for (const auto& [name, command] : commands_of(*app)) {
    int examples = 0;
    std::istringstream lines(command->get_footer());
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  ")) continue;
      for (const Strings& arguments : calls_of_dgc(line)) {
        const std::string wrong = complaint(arguments);
        CAPTURE(name, line, wrong);
        CHECK(wrong.empty());
        ++examples;
      }
    }
    CAPTURE(name);
    CHECK(examples > 0);
  }
}

TEST_CASE("the check of command lines sees what it looks for") {
  const auto [line, right] = GENERATE(table<std::string, bool>({
      {"dgc train x.json --set seed=2", true},
      {"dgc train x.json --sett seed=2", false},
      {"dgc trian x.json", false},
      {"dgc train", false},
      {"RANK=0 dgc plan x.json --workers 0", false},
      {"mpirun -n 4 dgc train x.json --set 'a={\"b\": 1}' # as before", true},
      {"mpirun -n 4 dgc train x.json y.json", false},
      {"cd x && build/release/dgc info > info.txt", true},
      {"cd x && build/release/dgc inform", false},
      {"dgc manual > folder/dgc", true},
      {"source <(dgc completion fish)", false},
      {"git clone URL dgc", true},  // which does not run it
      {"bench/compare dgc --rounds 3", true},
  }));
  CAPTURE(line);
  const auto calls = calls_of_dgc(line);
  CHECK(std::ranges::all_of(calls, [](const Strings& call) { return complaint(call).empty(); }) == right);
  CHECK(complaint_of_mention({"train", "--resume"}).empty());
  CHECK(complaint_of_mention({"COMMAND", "--help"}).empty());
  CHECK(!complaint_of_mention({"train", "--resum"}).empty());
  CHECK(!complaint_of_mention({"bench", "dcg"}).empty());
}

TEST_CASE("every config, script and source file that the documents name is there") {
  static const std::regex kPath(R"((?:^|[^\w/.-])((?:configs|scripts|bench|docs|cmake|src|tests)/[\w/.-]*\w))");
  int paths = 0;
  for (const fs::path& page : pages()) {
    const Page pieces = read(text_of(page));
    Strings code = pieces.code;
    std::ranges::copy(inline_code(pieces), std::back_inserter(code));
    for (const std::string& text : code) {
      if (text.find_first_of("*$") != std::string::npos) continue;  // several at once
      for (const std::string& path : matches(text, kPath)) {
        CAPTURE(page, text, path);
        CHECK(fs::exists(kSource / path));
        ++paths;
      }
    }
  }
  CHECK(paths > 50);
}

TEST_CASE("every config reads its data from where data/README.md says that a script leaves them") {
  static const std::regex kFolder(R"re("(data/[\w.-]+)[^"]*")re");
  const std::string readme = text_of(kSource / "data" / "README.md");
  int folders = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "configs")) {
    if (entry.path().extension() != ".json") continue;
    for (const std::string& folder : matches(text_of(entry.path()), kFolder)) {
      CAPTURE(entry.path(), folder);
      CHECK_THAT(readme, Catch::Contains(folder));
      CHECK_FALSE(fs::is_regular_file(kSource / folder));  // the script
      ++folders;
    }
  }
  CHECK(folders > 20);
}

TEST_CASE("docs/metrics.md has every field of metrics.jsonl, and no other") {
  StepMetrics step;
  step.group_bytes = step.left_out = 1;
  step.local_steps = 2;
  step.absent_ranks = {1, 3};
  EvalMetrics eval;
  for (const Metric* metric : all_metrics()) eval.measures.set(*metric, 1);
  FinalMetrics final;
  final.eval = eval;
  final.exchange_ms = 1;
  final.diverged = true;
  const Fields all = fields_of({to_row(step), to_row(eval), to_row(final, {})});
  const Fields always = fields_of({to_row(StepMetrics{}), to_row(EvalMetrics{}), to_row(FinalMetrics{}, {})});

  const std::string page = text_of(kSource / "docs/metrics.md");
  static const std::regex kRow(R"(\n\| (\(?)`(\w+)`\)? \| ([a-z, ]+) \|)");
  Fields documented;
  for (std::sregex_iterator row(page.begin(), page.end(), kRow), end; row != end; ++row) {
    const std::string field = (*row)[2];
    CAPTURE(field);
    for (const std::string& kind : split((*row)[3], ", ")) documented[field].insert(kind);
    CHECK(((*row)[1] == "(") == !always.contains(field));
  }
  CHECK(documented == all);
}

TEST_CASE("docs/troubleshooting.md quotes messages that the program has") {
  const std::string source = all_source();
  const Strings messages = matches(text_of(kSource / "docs/troubleshooting.md"), std::regex("\n\\| `([^`\n]+)` \\|"));
  CHECK(messages.size() > 25);
  for (const std::string& message : messages) {
    for (const std::string& part : split(message, "...")) {
      CAPTURE(message, part);
      CHECK(source.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("docs/wire_format.md has the number of each format of values and of indices") {
  const std::string page = text_of(DGC_SOURCE_DIR "/docs/wire_format.md");
  const auto check = [&](const auto& names) {
    for (size_t i = 0; i < names.size(); ++i) CHECK_THAT(page, Catch::Contains(fmt::format("{} {}", i, names[i])));
  };
  check(kWireValueNames);
  check(kWireIndexNames);
}

}  // namespace dgc

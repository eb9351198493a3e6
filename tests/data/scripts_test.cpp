#include <algorithm>
#include <set>

#include "paths.h"
#include "tests/data/fixtures.h"
#include "tests/support/shell.h"

// The scripts of data/, without a network: what they say of files that are wrong, missing, or not to be had.
namespace dgc {
namespace {

using Run = test::ShellRun;

Run run(const std::vector<std::string>& words) { return test::run_in_shell(test::command_of(words) + " 2>&1"); }

const std::string kScripts = DGC_SOURCE_DIR "/data/";

// Of a file; a URL has no spaces.
std::string url_of(const std::string& path) {
  std::string url = "file://";
  for (const char c : path) url += c == ' ' ? "%20" : std::string(1, c);
  return url;
}

TEST_CASE("data scripts: --help, and an unknown option") {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kScripts)) {
    if (entry.is_regular_file() && !entry.path().has_extension()) names.push_back(entry.path().filename());
  }
  REQUIRE(names.size() >= 9);
  for (const std::string& name : names) {
    const Run help = run({kScripts + name, "--help"});
    CHECK(help.code == 0);
    CHECK_THAT(help.output, Catch::Contains("usage") && Catch::Contains(name));
    CHECK(run({kScripts + name, "--colour"}).code == 2);
  }
}

TEST_CASE("data scripts: missing, wrong and unreachable files are named, and nothing is left behind") {
  const TempFolder from, out;
  for (const std::string name : {"fashion_mnist", "mnist", "cifar10"}) {
    const Run missing = run({kScripts + name, "--from", from.path(), out.path()});
    CHECK(missing.code == 2);
    CHECK_THAT(missing.output,
               Catch::Contains("data/" + name + ": " + from.path()) && Catch::Contains("there is no such file"));
  }
  from.write("train-images-idx3-ubyte.gz", gzip({1, 2, 3}));
  from.write("data_batch_1.bin", {1, 2, 3});
  CHECK_THAT(run({kScripts + "fashion_mnist", "--from", from.path(), out.path()}).output,
             Catch::Contains("train-images-idx3-ubyte.gz: SHA-256 of its content is"));
  CHECK_THAT(run({kScripts + "mnist", "--from", from.path(), out.path()}).output,
             Catch::Contains("train-images-idx3-ubyte.gz: MD5 is"));
  CHECK_THAT(run({kScripts + "cifar10", "--from", from.path(), out.path()}).output,
             Catch::Contains("data_batch_1.bin: MD5 is"));
  CHECK(std::filesystem::is_empty(out.path()));

  if (run({"curl", "--version"}).code != 0) {
    WARN("skipped: downloads, because there is no curl here");
    return;
  }
  const std::string nowhere = url_of(from.path() + "/nothing");
  CHECK_THAT(run({kScripts + "mnist", "--url", nowhere, out.path()}).output,
             Catch::Contains("could not download file://"));
  CHECK_THAT(run({kScripts + "cifar10", "--url", nowhere, out.path()}).output,
             Catch::Contains("could not download file://"));
  CHECK_THAT(run({kScripts + "cifar10", "--url", url_of(from.path() + "/data_batch_1.bin"), out.path()}).output,
             Catch::Contains("MD5 is 5289df737df57326fcdd22597afb1fac instead of c32a1d4ab5d03f1284b67883e8d87530"));
  CHECK(std::filesystem::is_empty(out.path()));
}

TEST_CASE("data scripts: texts that are missing or wrong are named") {
  const TempFolder from, out;
  const auto said = [&](std::vector<std::string> words) {
    words.front() = kScripts + words.front();
    const Run done = run(words);
    CHECK(done.code == 2);
    return done.output;
  };
  CHECK_THAT(said({"kjv", "--from", from.path() + "/none", out.path()}), Catch::Contains("there is no such file"));
  CHECK_THAT(said({"kjv", "--from", from.path(), out.path()}), Catch::Contains("there is no such file"));
  from.write("verses", {'G', 'e', '1', ':', '1', ' ', 'a', '\n'});
  CHECK_THAT(said({"kjv", "--from", from.path() + "/verses", out.path()}), Catch::Contains("/verses: SHA-256 is"));
  CHECK_THAT(said({"ptb", from.path(), out.path()}), Catch::Contains("there is no such file in it: ptb.train.txt"));
  CHECK_THAT(said({"ptb", from.path() + "/verses", out.path()}),
             Catch::Contains("cannot be unpacked as a .tgz archive: gzip: "));
  CHECK_THAT(said({"ptb"}), Catch::Contains("give the folder or archive"));
  from.write("ptb.train.txt", {'a', '\n'});
  CHECK_THAT(said({"ptb", from.path(), out.path()}), Catch::Contains("ptb.train.txt: SHA-256 is"));
  CHECK_THAT(said({"wikitext2", from.path(), out.path()}),
             Catch::Contains("there is no such file in it: wiki.train.tokens"));
  if (run({"unzip", "-v"}).code == 0) {
    CHECK_THAT(said({"wikitext2", from.path() + "/verses", out.path()}),
               Catch::Contains("cannot be unpacked as a .zip archive with WikiText-2: End-of-central-directory"));
  } else {
    WARN("skipped: archives of WikiText-2, because there is no unzip here");
  }
  from.write("wiki.train.tokens", {'a', ' ', 'b', '\n', ' ', '\n'});
  CHECK_THAT(said({"wikitext2", from.path(), out.path()}),
             Catch::Contains("wiki.train.tokens: 4 words instead of 2088628"));
  CHECK(std::filesystem::is_empty(out.path()));
}

TEST_CASE("data/an4: what is missing is named, and nothing is left behind") {
  const TempFolder from, out;
  const std::string to = out.path() + "/an4";
  const auto said = [&] {
    const Run done = run({kScripts + "an4", from.path(), to});
    CHECK(done.code == 2);
    CHECK_FALSE(std::filesystem::exists(to));
    return done.output;
  };
  const auto write = [&](const std::string& name, const std::string& text) {
    from.write(name, Bytes(text.begin(), text.end()));
  };
  CHECK_THAT(said(), Catch::Contains("there is no such file in it: etc/an4_train.fileids"));
  std::string ids, texts;
  for (int i = 0; i < 948; ++i) {
    const std::string name = "an" + std::to_string(i) + "-x-b";
    ids += "an4_clstk/x/" + name + "\n";
    texts += "<s> YES </s> (" + name + ")\n";
    if (i > 0) write("wav/an4_clstk/x/" + name + (i % 2 == 0 ? ".sph" : ".flac"), "sound");
  }
  write("etc/an4_train.fileids", ids);
  write("etc/an4_train.transcription", texts);
  CHECK_THAT(said(), Catch::Contains("there is no such recording in it: wav/an4_clstk/x/an0-x-b.sph"));
  write("wav/an4_clstk/x/an0-x-b.wav", "sound");
  write("etc/an4_test.fileids", "an4_clstk/x/an1-x-b\n");
  write("etc/an4_test.transcription", "YES (an2-x-b)\n");
  CHECK_THAT(said(), Catch::Contains("etc/an4_test.transcription has no transcript of an1-x-b"));
  write("etc/an4_test.transcription", "YES (an1-x-b)\n");
  CHECK_THAT(said(), Catch::Contains("etc/an4_test.fileids lists 1 in place of 130 utterances"));
}

TEST_CASE("data/an4: of what lies in the folder it replaces the recordings and lists, and nothing else") {
  const TempFolder from, out;
  const auto write = [&](const std::string& name, const std::string& text) {
    from.write(name, Bytes(text.begin(), text.end()));
  };
  // Lines end as on Windows, and the last one of a list does not.
  std::string ids, texts;
  for (int i = 0; i < 948; ++i) {
    const std::string name = "an" + std::to_string(i) + "-x-b";
    ids += (i > 0 ? "\r\nx/" : "x/") + name;
    texts += "YES (" + name + ")\r\n";
    write("wav/x/" + name + ".wav", "sound");
    if (i == 129) {
      write("etc/an4_test.fileids", ids);
      write("etc/an4_test.transcription", texts);
    }
  }
  write("etc/an4_train.fileids", ids);
  write("etc/an4_train.transcription", texts);
  out.write("thesis.tex", {1});
  out.write("wav/x/old.wav", {1});
  const auto old = [&] { return std::filesystem::exists(out.path() + "/wav/x/old.wav"); };
  const Run refused = run({kScripts + "an4", from.path(), out.path()});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.output, Catch::Contains("/wav is there and is not of AN4: give another folder"));
  CHECK(old());
  out.write("etc/an4_train.fileids", {1});
  const Run done = run({kScripts + "an4", from.path(), out.path()});
  INFO(done.output);
  CHECK(done.code == 0);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(out.path())) names.insert(entry.path().filename());
  CHECK(names == std::set<std::string>{"etc", "thesis.tex", "wav"});
  CHECK(std::filesystem::exists(out.path() + "/wav/x/an947-x-b.wav"));
  CHECK(!old());
}

TEST_CASE("data/imagenet: folders by class, from archives") {
  const TempFolder from, out;
  REQUIRE(run({"python3", DGC_SOURCE_DIR "/tests/data/make_imagenet.py", from.path()}).code == 0);
  const std::vector<std::string> checking = {kScripts + "imagenet", from.path(), out.path(), "--classes", "2"};
  std::vector<std::string> trusting = checking;
  trusting.push_back("--skip-checksums");
  const Run checked = run(checking);
  CHECK(checked.code == 2);
  CHECK_THAT(checked.output, Catch::Contains("ILSVRC2012_devkit_t12.tar.gz: MD5 is"));
  for (int again = 0; again < 2; ++again) {
    const Run done = run(trusting);
    INFO(done.output);
    CHECK(done.code == 0);
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out.path())) {
      if (entry.is_regular_file()) files.push_back(std::filesystem::relative(entry.path(), out.path()).string());
    }
    std::sort(files.begin(), files.end());
    CHECK(files == std::vector<std::string>{"train/n00000011/n00000011_1.JPEG", "train/n00000022/n00000022_1.JPEG",
                                            "train/n00000022/n00000022_2.JPEG",
                                            "val/n00000011/ILSVRC2012_val_00000001.JPEG",
                                            "val/n00000022/ILSVRC2012_val_00000002.JPEG"});
  }
  const std::string devkit = from.path() + "/ILSVRC2012_devkit_t12.tar.gz";
  std::filesystem::resize_file(devkit, std::filesystem::file_size(devkit) / 2);
  const Run cut = run(trusting);
  CHECK(cut.code == 2);
  CHECK_THAT(cut.output, Catch::StartsWith("data/imagenet: "));
  std::filesystem::remove(from.path() + "/ILSVRC2012_img_val.tar");
  CHECK_THAT(run(trusting).output, Catch::Contains("ILSVRC2012_img_val.tar: there is no such file"));
}

TEST_CASE("data/asterisk_sounds: manifests of what is transcribed and spoken") {
  const TempFolder from, out;
  std::string texts =
      "; Core Sounds\n\nbeep: [a tone]\ndictate/both: press * to pause\nsilence/1: (1 second of silence)\n"
      "num: dial 28.8 now\nnowhere: Not there.\nsay/you-re: You're in: press 1, or 2 (thanks).\n";
  for (char c = 'a'; c < 'l'; ++c) {
    from.write(std::string(1, c) + ".wav", {1});
    texts += std::string(1, c) + ": Letter " + c + "!\n";
  }
  for (const std::string name : {"beep", "dictate/both", "silence/1", "num", "say/you-re"})
    from.write(name + ".wav", {1});
  const std::string list = from.write("texts.txt", Bytes(texts.begin(), texts.end()));
  const Run done = run({kScripts + "asterisk_sounds", "--from", from.path(), "--texts", list, out.path()});
  INFO(done.output);
  REQUIRE(done.code == 0);
  CHECK_THAT(done.output, Catch::Contains("11 for training, 1 for testing"));
  const auto read = [&](const std::string& name) {
    std::ifstream file(out.path() + "/" + name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string train = read("train.jsonl");
  CHECK_THAT(train, Catch::Contains("/say/you-re.wav\", \"text\": \"YOU'RE IN PRESS ONE OR TWO\"}\n"));
  CHECK_THAT(train, Catch::Contains("/a.wav\", \"text\": \"LETTER A\"}\n"));
  CHECK_THAT(read("test.jsonl"), Catch::Contains("/j.wav\", \"text\": \"LETTER J\"}\n"));

  const Run none = run({kScripts + "asterisk_sounds", "--from", out.path(), "--texts", list, out.path()});
  CHECK(none.code == 2);
  CHECK_THAT(none.output, Catch::Contains("only 0 of the recordings"));
  CHECK_THAT(run({kScripts + "asterisk_sounds", "--from", "/nowhere", out.path()}).output,
             Catch::Contains("/nowhere: there is no such folder"));
}

}  // namespace
}  // namespace dgc

#include "data/speech/corpus.h"
#include "data/speech/open_speech.h"
#include "data/speech/sound_file.h"
#include "tests/data/speech/sounds.h"

namespace dgc {
namespace {

std::string write_text(const TempFolder& folder, const std::string& name, const std::string& text) {
  return folder.write(name, Bytes(text.begin(), text.end()));
}

void write_an4(const TempFolder& folder, const std::string& split, const std::string& ids, const std::string& texts) {
  write_text(folder, "etc/an4_" + split + ".fileids", ids);
  write_text(folder, "etc/an4_" + split + ".transcription", texts);
}

std::vector<std::string> texts(const std::vector<Utterance>& utterances) {
  std::vector<std::string> out;
  for (const Utterance& u : utterances) out.push_back(u.text);
  return out;
}

using Texts = std::vector<std::string>;

TEST_CASE("AN4: lists, transcripts with and without <s>, whatever holds the samples") {
  const TempFolder folder;
  write_an4(folder, "train", "an4_clstk/fash/an251-fash-b\nan4_clstk/fash/cen1-fash-b\n",
            "<s> H I N I C H </s> (cen1-fash-b)\n<s> YES </s> (an251-fash-b)\n");
  write_an4(folder, "test", "an4test_clstk/fcaw/an406-fcaw-b", "RUBOUT G M E F THREE NINE (an406-fcaw-b)\r\n");
  folder.write("wav/an4_clstk/fash/cen1-fash-b.flac", {1});
  const std::vector<Utterance> train = list_an4(folder.path(), {}, Split::train);
  CHECK(texts(train) == Texts{"YES", "H I N I C H"});
  CHECK(train[0].path == folder.path() + "/wav/an4_clstk/fash/an251-fash-b.sph");
  CHECK(train[1].path == folder.path() + "/wav/an4_clstk/fash/cen1-fash-b.flac");
  CHECK_THAT(train[1].name, Catch::EndsWith("etc/an4_train.transcription: cen1-fash-b"));
  CHECK(texts(list_an4(folder.path(), {}, Split::test)) == Texts{"RUBOUT G M E F THREE NINE"});
}

TEST_CASE("AN4: a list without an end is refused") {
  const TempFolder folder;
  write_an4(folder, "train", "", "");
  std::filesystem::remove(folder.path() + "/etc/an4_train.fileids");
  std::filesystem::create_symlink("/dev/zero", folder.path() + "/etc/an4_train.fileids");
  CHECK_THAT(user_error([&] { list_an4(folder.path(), {}, Split::train); }),
             Catch::Contains("etc/an4_train.fileids: line 1 is longer than 1 MiB"));
}

TEST_CASE("AN4: lists that do not fit") {
  const TempFolder folder;
  const auto complaint = [&] { return user_error([&] { list_an4(folder.path(), {}, Split::train); }); };
  CHECK_THAT(complaint(),
             Catch::Contains("an4_train.transcription: there is no such file") && Catch::Contains("data.path"));
  write_an4(folder, "train", "a/u1\na/u2\n", "YES (u1)\n");
  CHECK_THAT(complaint(), Catch::Contains("an4_train.fileids: line 2: ") && Catch::Contains("no transcript of u2"));
  write_an4(folder, "train", "a/u1\n", "YES (u1)\nNO\n");
  CHECK_THAT(complaint(), Catch::Contains("an4_train.transcription: line 2: it does not end with an utterance's name"));
  write_an4(folder, "train", "a/u1\n", "YES (u1)\nNO ()\n");
  CHECK_THAT(complaint(), Catch::Contains("an4_train.transcription: line 2: it does not end with an utterance's name"));
  write_an4(folder, "train", "a/u1\n", "YES (u1)\nNO (u1)\n");
  CHECK_THAT(complaint(), Catch::Contains("line 2: there is a transcript of u1 already"));
  write_an4(folder, "train", "a/u1\n\na/u1\n", "YES (u1)\n");
  CHECK_THAT(complaint(), Catch::Contains("an4_train.fileids: line 3: u1 is listed already; remove one"));
  write_an4(folder, "train", "\n", "YES (u1)\n");
  CHECK_THAT(complaint(), Catch::Contains("lists no utterances"));
}

TEST_CASE("LibriSpeech: its own layout") {
  const TempFolder folder;
  write_text(folder, "train-clean-100/19/198/19-198.trans.txt",
             "19-198-0000 NORTHANGER ABBEY\n19-198-0001 THIS LITTLE WORK\n");
  write_text(folder, "train-clean-100/103/1240/103-1240.trans.txt", "103-1240-0000 CHAPTER ONE\n");
  write_text(folder, "train-other-500/20/1/20-1.trans.txt", "20-1-0000 DON'T\n");
  write_text(folder, "test-clean/1/2/1-2.trans.txt", "1-2-0000 HE HOPED\r\n1-2-0001\r\n");
  const auto read = [&](const std::vector<std::string>& parts) {
    return list_librispeech(folder.path(), parts, Split::train);
  };
  CHECK(texts(read({"train-clean-100"})) == Texts{"CHAPTER ONE", "NORTHANGER ABBEY", "THIS LITTLE WORK"});
  CHECK(texts(read({"train-other-500", "test-clean"})) == Texts{"DON'T", "HE HOPED", ""});
  CHECK(read({"test-clean"})[1].path == folder.path() + "/test-clean/1/2/1-2-0001.flac");
  CHECK(read({"train-clean-100"})[1].path == folder.path() + "/train-clean-100/19/198/19-198-0000.flac");
  CHECK_THAT(user_error([&] { read({"dev"}); }), Catch::Contains("/dev: there is no such folder"));

  // The usual parts, and ones of choice.
  CHECK(list_librispeech(folder.path(), {}, Split::train).size() == 4);
  CHECK(list_librispeech(folder.path(), {}, Split::test).size() == 2);
  CHECK(list_librispeech(folder.path(), {"train-other-500"}, Split::train).size() == 1);

  // Archives beside the folders, and speakers who are linked.
  write_text(folder, "train-clean-100.tar.gz", "");
  write_text(folder, "train-clean-360.part/README", "");
  write_text(folder, "elsewhere/7/1/7-1.trans.txt", "7-1-0000 LINKED\n");
  std::filesystem::create_directory_symlink(folder.path() + "/elsewhere/7", folder.path() + "/train-clean-100/7");
  std::filesystem::create_directory_symlink(".", folder.path() + "/train-clean-100/self");
  std::filesystem::create_directory_symlink("19", folder.path() + "/train-clean-100/20");
  CHECK(list_librispeech(folder.path(), {}, Split::train).size() == 5);
  CHECK_THAT(user_error([&] { list_librispeech(folder.path() + "/test-clean", {}, Split::train); }),
             Catch::Contains("no folder train-... in it"));
  write_text(folder, "unnamed/1/2/1-2.trans.txt", "1-2-0000 HE HOPED\n HE HOPED\n");
  CHECK_THAT(user_error([&] { read({"unnamed"}); }),
             Catch::Contains("1-2.trans.txt: line 2: it does not begin with an utterance's name"));
}

TEST_CASE("manifest: a folder that is not there is refused by the name of its key") {
  CHECK_THAT(user_error([] { list_manifests("nowhere", {}, Split::train); }),
             Catch::StartsWith("nowhere/train.jsonl: there is no such file; set data.path to the folder of"));
}

TEST_CASE("manifest: JSON Lines") {
  const TempFolder folder;
  write_text(folder, "m/train.jsonl",
             "\xef\xbb\xbf{\"path\": \"a/x.wav\", \"text\": \"GO\", \"duration\": 1.5, \"speaker\": [3]}\n\n"
             "{\"text\": \"caf\\u00e9\", \"path\": \"/b.flac\"}\n"
             "{\"path\": \"c.wav\", \"text\": \"\", \"duration\": null}");
  const std::vector<Utterance> all = list_manifests(folder.path(), {"m/train.jsonl"}, Split::train);
  CHECK(texts(all) == Texts{"GO", "caf\xc3\xa9", ""});
  CHECK(all[0].path == folder.path() + "/m/a/x.wav");
  CHECK(all[0].seconds == 1.5);
  CHECK(all[1].path == "/b.flac");
  CHECK(all[1].seconds == 0);
  CHECK_THAT(all[2].name, Catch::EndsWith("train.jsonl: line 4 (c.wav)"));

  const auto [text, want] = GENERATE(table<std::string, std::string>({
      {"{\"path\": \"x\", \"text\": \"A\"}\n{\"path\": \"x\"}\n", "line 2: it needs a text \"text\""},
      {"{\"text\": \"x\"}", "line 1: it needs a text \"path\""},
      {"{\"text\": \"x\", \"path\": \"a\\u0000b\"}", "line 1: \"path\" has a NUL in it"},
      {"{\"path\": 3, \"text\": \"x\"}", "line 1: it needs a text \"path\""},
      {"{\"path\": \"x\", \"text\": \"A\", \"duration\": -1}", "line 1: \"duration\" must be a positive number"},
      {"{\"path\": \"x\", \"text\": \"A\", \"duration\": 0}", "line 1: \"duration\" must be a positive number"},
      {"{\"path\": \"x\", \"text\": \"A\", \"duration\": \"1\"}", "line 1: \"duration\" must be a positive number"},
      {"path,text\n", "line 1"},
      {"{\"path\": \"x\", \"text\": \"A\"", "line 1"},
      {"\n", "it lists no utterances"},
  }));
  const std::string bad = write_text(folder, "bad.jsonl", text);
  const std::string error = user_error([&] { list_manifests(folder.path(), {"bad.jsonl"}, Split::train); });
  CHECK(error.starts_with(bad + ": "));
  CHECK_THAT(error, Catch::Contains(want));
}

// A manifest of three good recordings and one of each kind of bad ones.
struct Mixed {
  Mixed() {
    write_sound(folder, "long.wav", sine(300, 16000, 8000));
    write_sound(folder, "short.flac", sine(300, 16000, 3200), {16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16});
    write_sound(folder, "middle.sph", sine(300, 8000, 3200), {8000, 1, SF_FORMAT_NIST | SF_FORMAT_PCM_16});
    write_sound(folder, "stereo.wav", sine(300, 16000, 8000), {16000, 2});
    write_sound(folder, "tiny.wav", sine(300, 16000, 300));
    write_text(folder, "text.wav", "not audio");
    folder.write("empty.wav", {});
    add("long.wav", "GO ON");
  }
  std::unique_ptr<SpeechCorpus> open() const {
    return std::make_unique<SpeechCorpus>(list_manifests(folder.path(), {}, Split::train), options, threads);
  }
  void add(const std::string& path, const std::string& text) {
    manifest += "{\"path\": \"" + path + "\", \"text\": \"" + text + "\"}\n";
    write_text(folder, "train.jsonl", manifest);
  }

  TempFolder folder;
  std::string manifest;
  SpeechOptions options;
  int threads = 1;
};

TEST_CASE("corpus: from the shortest to the longest, with lengths out of headers") {
  Mixed mixed;
  mixed.add("short.flac", " YES ");
  mixed.add("middle.sph", "NO");
  mixed.threads = GENERATE(1, 3);
  const auto corpus = mixed.open();
  REQUIRE(corpus->size() == 3);
  CHECK(corpus->utterance(0).text == "YES");
  CHECK(corpus->utterance(1).text == "NO");
  CHECK(corpus->utterance(2).text == "GO ON");
  CHECK(corpus->utterance(0).seconds == 0.2);
  CHECK(corpus->utterance(1).seconds == 0.4);
  CHECK(corpus->longest_seconds() == 0.5);
  CHECK(Alphabet(kEnglish).text(corpus->labels(2)) == "GO ON");
  CHECK(corpus->skipped().empty());
}

TEST_CASE("corpus: of equally long recordings the one whose path comes first is first") {
  Mixed mixed;
  for (const char* name : {"c.wav", "a.wav", "b.wav"}) {
    write_sound(mixed.folder, name, sine(300, 16000, 3200));
    mixed.add(name, "GO");
  }
  const auto corpus = mixed.open();
  for (int64_t i = 0; i < 3; ++i) {
    CHECK(corpus->utterance(i).path == mixed.folder.path() + "/" + static_cast<char>('a' + i) + ".wav");
  }
}

// Leaves out the number of samples, the lower 36 bits of bytes 18 to 25, as programs do that write into a pipe.
void forget_length(const TempFolder& folder, const std::string& name) {
  Bytes flac = bytes_of(folder.path() + "/" + name);
  flac[21] &= 0xf0;
  std::fill_n(flac.begin() + 22, 4, uint8_t{0});
  folder.write(name, flac);
}

TEST_CASE("corpus: a recording whose header does not say its length is read for it") {
  Mixed mixed;
  mixed.add("short.flac", "YES");
  forget_length(mixed.folder, "short.flac");
  CHECK(SoundFile(mixed.folder.path() + "/short.flac").samples() == 0);
  CHECK(mixed.open()->utterance(0).seconds == 0.2);
  mixed.options.audio.sample_rate = 8000;
  CHECK(mixed.open()->utterance(0).seconds == Approx(0.2).margin(0.001));
  mixed.options.audio.max_seconds = 0.15;
  mixed.options.on_bad_example = OnBadExample::skip;
  mixed.add("tiny.flac", "GO");
  write_sound(mixed.folder, "tiny.flac", sine(300, 16000, 2000), {16000, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16});
  const auto corpus = mixed.open();
  REQUIRE(corpus->skipped().size() == 2);
  CHECK_THAT(corpus->skipped()[1], Catch::Contains("short.flac: it is longer than the 0.15 s of data.max_seconds"));

  mixed.options.audio.max_seconds = 0.25;  // of 16 kHz, in which the recording is
  CHECK(mixed.open()->skipped().size() == 1);

  mixed.add("none.wav", "GO");
  write_sound(mixed.folder, "none.wav", {});
  CHECK_THAT(mixed.open()->skipped().back(), Catch::Contains("none.wav: the file holds no samples"));
}

TEST_CASE("corpus: bad examples are refused or skipped, and named either way") {
  Mixed mixed;
  const auto [path, text, want] = GENERATE(table<std::string, std::string, std::string>({
      {"missing.wav", "GO", "missing.wav: cannot open it"},
      {"empty.wav", "GO", "empty.wav: the file is empty"},
      {"stereo.wav", "GO", "stereo.wav: it has 2 channels"},
      {"text.wav", "GO", "text.wav: this is no WAV, FLAC or SPHERE file"},
      {"tiny.wav", "GO", "tiny.wav: it is 0.01875 s long, shorter than a window of 0.02 s"},
      {"long.wav", "", "train.jsonl: line 2 (long.wav): its transcript is empty"},
      {"long.wav", "GO 2", "train.jsonl: line 2 (long.wav): the character '2'"},
  }));
  mixed.add(path, text);
  mixed.add("short.flac", "YES");
  CHECK_THAT(user_error([&] { mixed.open(); }), Catch::Contains(want));
  mixed.options.on_bad_example = OnBadExample::skip;
  const auto corpus = mixed.open();
  CHECK(corpus->size() == 2);
  REQUIRE(corpus->skipped().size() == 1);
  CHECK_THAT(corpus->skipped()[0], Catch::Contains(want));
}

TEST_CASE(
    "corpus: with skip, a file that is not there is left out though its length is listed, and so is another rate") {
  Mixed mixed;
  mixed.options.on_bad_example = OnBadExample::skip;
  mixed.options.audio.resample = false;
  mixed.add("middle.sph", "NO");
  mixed.manifest += "{\"path\": \"gone.wav\", \"text\": \"GO\", \"duration\": 0.3}\n";
  mixed.add("short.flac", "YES");
  const auto corpus = mixed.open();
  CHECK(corpus->size() == 2);
  REQUIRE(corpus->skipped().size() == 2);
  CHECK_THAT(corpus->skipped()[0], Catch::Contains("middle.sph: its rate is 8000 Hz and data.sample_rate is 16000"));
  CHECK_THAT(corpus->skipped()[1], Catch::Contains("gone.wav: cannot open it: No such file or directory"));
}

TEST_CASE("corpus: a recording of one window is long enough") {
  Mixed mixed;
  write_sound(mixed.folder, "tiny.wav", sine(300, 16000, 320));
  mixed.add("tiny.wav", "GO");
  CHECK(mixed.open()->utterance(0).seconds == 0.02);
}

TEST_CASE("corpus: longer than data.max_seconds") {
  Mixed mixed;
  mixed.options.audio.max_seconds = 0.3;
  CHECK_THAT(user_error([&] { mixed.open(); }),
             Catch::Contains("long.wav: its 0.5 s are more than the 0.3 s of data.max_seconds"));
}

TEST_CASE("corpus: lengths that are nearly right, or far from it, are told as they are") {
  Mixed mixed;
  write_sound(mixed.folder, "tiny.wav", sine(300, 16000, 319));
  mixed.options.on_bad_example = OnBadExample::skip;
  mixed.options.audio.max_seconds = 0.5;
  for (const char* seconds : {"0.01999", "0.5003", "1e308"}) {
    mixed.manifest += fmt::format(R"({{"path": "tiny.wav", "text": "GO", "duration": {}}})", seconds) + "\n";
  }
  mixed.add("tiny.wav", "GO");
  const std::vector<std::string> told = mixed.open()->skipped();
  REQUIRE(told.size() == 4);
  CHECK_THAT(told[0], Catch::Contains("it is 0.01999 s long, shorter than a window of 0.02 s"));
  CHECK_THAT(told[1], Catch::Contains("its 0.5003 s are more than the 0.5 s"));
  CHECK_THAT(told[2], Catch::Contains("its 1e+308 s are more than the 0.5 s"));
  CHECK_THAT(told[3], Catch::Contains("it is 0.0199375 s long, shorter than a window of 0.02 s"));
}

}  // namespace
}  // namespace dgc

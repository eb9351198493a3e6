#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"

namespace dgc {

// One recording, as a corpus lists it.
struct Utterance {
  std::string name;  // for messages: where it is listed, and as what
  std::string path;  // path of the sound file
  std::string text;
  double seconds = 0;  // length as listed; 0: not known
};

// The readers look at lists and transcripts alone, not at recordings, and keep their order. A list that is missing or
// does not make sense is a UserError that names file and line, whatever data.on_bad_example says.

// Reads CMU AN4 (www.speech.cs.cmu.edu/databases/an4): ROOT/etc/an4_train.fileids and .transcription, or those of
// an4_test, and ROOT/wav/ID with .sph, .wav or .flac. "<s>" and "</s>" around a transcript are dropped.
std::vector<Utterance> read_an4(const std::string& root, Split);

// Reads LibriSpeech as it is unpacked (Panayotov et al. 2015, openslr.org/12): ROOT/SUBSET/SPEAKER/CHAPTER/ with
// SPEAKER-CHAPTER.trans.txt, whose lines are an id and its text, and ID.flac.
std::vector<Utterance> read_librispeech(const std::string& root, const std::vector<std::string>& subsets);

// Reads JSON Lines: one object per line, with "path" (relative to the manifest's folder, or absolute), "text" and, if
// known, "duration" in seconds. Other keys are ignored.
std::vector<Utterance> read_speech_manifest(const std::string& path);

}  // namespace dgc

#pragma once

#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/speech/utterances.h"

// These functions list the recordings of the sets that data.type can name. root: the set's folder; parts: the parts
// that make up the split; empty: the usual parts. They look at lists and transcripts alone, not at recordings, and keep
// their order. A list that is missing or does not make sense is a UserError that names file and line, whatever
// data.on_bad_example says.
namespace dgc {

// CMU AN4 (www.speech.cs.cmu.edu/databases/an4): ROOT/etc/an4_train.fileids and .transcription, or those of an4_test,
// and ROOT/wav/ID with .sph, .wav or .flac. "<s>" and "</s>" around a transcript are dropped. There is a list for each
// split, so `parts` must be empty.
std::vector<Utterance> list_an4(const std::string& root, const std::vector<std::string>& parts, Split);

// LibriSpeech as it is unpacked (Panayotov et al. 2015, openslr.org/12): ROOT/PART/SPEAKER/CHAPTER/ with
// SPEAKER-CHAPTER.trans.txt, whose lines are an id and its text, and ID.flac. The usual parts are all folders that
// begin with "train-" for training, and "test-clean" otherwise.
std::vector<Utterance> list_librispeech(const std::string& root, const std::vector<std::string>& parts, Split);

// Files of JSON Lines: one object per line, with "path" (relative to the file's folder, or absolute), "text" and, if
// known, "duration" in seconds. Other keys are ignored. The usual part is train.jsonl for training, and test.jsonl
// otherwise.
std::vector<Utterance> list_manifests(const std::string& root, const std::vector<std::string>& parts, Split);

}  // namespace dgc

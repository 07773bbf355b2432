"""BERT's tokenizer in plain Python: slow, short, and only for preparing the training set.

Reads the vocabulary from a Hugging Face tokenizer.json (BertNormalizer, BertPreTokenizer,
WordPiece). The mails are Latin-1, which is all that it was checked on.
"""
import json
import unicodedata


def is_punctuation(char):
    return (33 <= ord(char) <= 47 or 58 <= ord(char) <= 64 or 91 <= ord(char) <= 96
            or 123 <= ord(char) <= 126 or unicodedata.category(char).startswith("P"))


def is_control(char):
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf", "Cn", "Co")


class WordPiece:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        model = config["model"]
        self.vocab = model["vocab"]
        self.prefix = model["continuing_subword_prefix"]
        self.max_word = model["max_input_chars_per_word"]
        self.unknown = self.vocab[model["unk_token"]]
        self.first, self.last = self.vocab["[CLS]"], self.vocab["[SEP]"]
        self.specials = [token["content"] for token in config["added_tokens"]]
        self.max_length = (config.get("truncation") or {}).get("max_length", 512)
        self.known = {}

    def encode(self, text):
        ids = []
        for part, is_special in self._split_specials(text):
            if is_special:
                ids.append(self.vocab[part])
            else:
                for word in self._words(part):
                    ids.extend(self._pieces(word))
        return [self.first] + ids[:self.max_length - 2] + [self.last]

    def _split_specials(self, text):
        while text:
            found = [(text.find(token), token) for token in self.specials if token in text]
            if not found:
                yield text, False
                return
            at, token = min(found)
            if at:
                yield text[:at], False
            yield token, True
            text = text[at + len(token):]

    @staticmethod
    def _words(text):
        text = "".join(" " if char.isspace() else char for char in text
                       if char not in "\0\ufffd" and not is_control(char))
        text = "".join(char for char in unicodedata.normalize("NFD", text)
                       if unicodedata.category(char) != "Mn").lower()
        for chunk in text.split():
            word = ""
            for char in chunk:
                if is_punctuation(char):
                    if word:
                        yield word
                    yield char
                    word = ""
                else:
                    word += char
            if word:
                yield word

    def _pieces(self, word):
        if word not in self.known:
            self.known[word] = self._longest_first(word)
        return self.known[word]

    def _longest_first(self, word):
        if len(word) > self.max_word:
            return [self.unknown]
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self.vocab.get((self.prefix if start else "") + word[start:end])
                if piece is not None:
                    break
            else:
                return [self.unknown]
            pieces.append(piece)
            start = end
        return pieces

import { mix } from './random.ts'

/**
 * The text of answers, token by token. A token is a function of (text seed, index): nothing has to
 * be kept for what was generated and not yet sent.
 */

const WORDS =
  `the a of to and in is that it for as with this we be on are can from by which have an or not if
  then so at each one two three first second next step answer question problem value number result
  case example because since therefore however while when where how what why let consider suppose
  note check compare find show follow write compute add multiply divide equals sum difference product
  function list string line word sentence reason model token data table column row key index order
  time hour minute day week month year rate speed distance price cost total average mean share part
  whole half quarter small large long short high low new old good better best simple clear exact
  likely possible true false given known unknown same different other another more most less least
  only also even still again now here there about over under between before after during without
  within through into onto across around both either neither any some many much few several all none
  every who whom whose they them their he she his her you your our us my me say see know think make
  take give use need want work look ask try call keep hold turn start stop end begin open close`
    .trim()
    .split(/\s+/)
    .map((word) => ` ${word}`)

/** What an answer, or its reasoning, begins with. */
const OPENERS = ['The', 'We', 'Let', 'To', 'First', 'It', 'This', 'Here', 'Yes', 'No', 'Okay', 'So']

/**
 * What breaks byte handling: quotes, backslashes, line separators that are no line ends of JSONL,
 * characters of two to four bytes, joined emoji, right-to-left script, text that looks like framing.
 */
const SPECIALS = [
  '.',
  ',',
  ':',
  ';',
  '?',
  '!',
  '\n',
  '\n\n',
  '\r\n',
  '\t',
  ' "quoted"',
  " 'single'",
  ' \\frac{1}{2}',
  ' C:\\temp',
  ' naïve',
  ' café',
  ' Größe',
  ' señor',
  ' Δx',
  ' ∑',
  ' ≤',
  ' €',
  ' “curly”',
  ' 数学',
  ' 答案',
  ' こんにちは',
  ' 한국어',
  ' Привет',
  ' שלום',
  ' مرحبا',
  ' नमस्ते',
  ' 🙂',
  ' 🚀',
  ' 👩‍🔬',
  ' 🇺🇳',
  ' 𝑥²',
  '\u2028',
  '\u2029',
  '\u0085',
  ' {"a": [1, 2]}',
  ' [DONE]',
  '\n\ndata: [DONE]\n\n',
  ' </s>',
  ' **bold**',
  '\n- item',
  '\n```python\nprint("hi")\n```\n',
  ' 12345678901234567890',
  ' 1e400',
  ' null',
  ' %s',
  ' \u007f',
  ' \u0001',
  ' e\u0301',
]

/** One token in this many is special, the rest are words. */
const SPECIAL_ONE_IN = 12

/** All tokens, as they are and as they stand inside a JSON string. */
const TOKENS = [...WORDS, ...SPECIALS, ...OPENERS]
const ESCAPED = TOKENS.map((token) => JSON.stringify(token).slice(1, -1))

function tokenIndex(seed: number, index: number, opens: boolean): number {
  const draw = mix(seed, index)
  const rest = Math.floor(draw / SPECIAL_ONE_IN)
  if (opens) return WORDS.length + SPECIALS.length + (rest % OPENERS.length)
  if (draw % SPECIAL_ONE_IN === 0) return WORDS.length + (rest % SPECIALS.length)
  return rest % WORDS.length
}

/**
 * The `index`-th token of the answer that `seed` names.
 * @param opens whether it is the first of the reasoning or of the content
 */
export function tokenText(seed: number, index: number, opens: boolean): string {
  return TOKENS[tokenIndex(seed, index, opens)]!
}

/** The same token as it stands inside a JSON string; no escaping is done per token. */
export function escapedToken(seed: number, index: number, opens: boolean): string {
  return ESCAPED[tokenIndex(seed, index, opens)]!
}

/** The tokens from `start` to `end` as one text; the first of them opens it. */
export function joinTokens(seed: number, start: number, end: number): string {
  let text = ''
  for (let index = start; index < end; index++) text += tokenText(seed, index, index === start)
  return text
}

/** vLLM's tokenizer is not here: four characters a token, about right for English, at least one. */
export function countPromptTokens(text: string): number {
  return Math.max(1, Math.ceil(text.length / 4))
}

import { isUtf8 } from 'node:buffer'
import { hasBom } from './file-kind.ts'
import { inspectLine } from './json-inspect.ts'
import { grammarProblem, isBlankRange, type LineCode, type LineProblem } from './json-problem.ts'
import { JsonScanner } from './json-scan.ts'
import { KERNEL_DEPTH, type Kernel, kernelOf } from './kernel.ts'

/** Problems that `--allow` can let pass: the line is still JSON, or no line at all. */
export const ALLOWABLE = ['blank', 'bom', 'duplicate-key', 'lone-surrogate', 'too-deep'] as const

export interface LinePolicy {
  /** Nesting beyond this is `too-deep`. */
  maxDepth: number
  /** Codes that are no problem here. */
  allow: ReadonlySet<string>
}

const NONE: readonly LineProblem[] = []

/**
 * Judges the lines of a block one by one: the fast scanner first, the slow passes only for lines it
 * does not like. The one truth about lines for all binaries.
 */
export class LineJudge {
  /** Holds the top-level members of the last line that was one value. */
  readonly scanner: JsonScanner
  /** Where the last judged line ends, its line feed excluded. */
  end = 0
  /** Whether the last judged line has a line feed. */
  terminated = true
  /** Lines that `passClean` went over last. */
  passed = 0
  /** What is wrong with the last judged line, in the order of its bytes; empty for a clean one. */
  problems: readonly LineProblem[] = NONE

  /** Whatever the kernel reads as one value is clean. */
  readonly takesAll: boolean

  #policy: LinePolicy
  #comparesKeys: boolean
  /** What makes a value suspect is allowed, so that no second look is needed. */
  #lenient: boolean
  #bytes: Buffer = Buffer.alloc(0)
  #blockEnd = 0
  #isUtf8 = true
  #kernel: Kernel | undefined

  constructor(policy: LinePolicy) {
    const { allow, maxDepth } = policy
    this.#policy = policy
    this.#comparesKeys = !allow.has('duplicate-key')
    this.#lenient = !this.#comparesKeys && allow.has('lone-surrogate')
    this.takesAll = this.#lenient && (allow.has('too-deep') || maxDepth >= KERNEL_DEPTH)
    this.scanner = new JsonScanner(this.#comparesKeys)
  }

  /**
   * Begins with a block of lines.
   *
   * @param bytes with a line feed at `end` and the scanner's PADDING behind it
   */
  begin(bytes: Buffer, end: number): void {
    this.scanner.use(bytes)
    this.#bytes = bytes
    this.#blockEnd = end
    this.#isUtf8 = isUtf8(bytes.subarray(0, end))
    this.#kernel = this.#isUtf8 ? kernelOf(bytes) : undefined
  }

  /** The kernel for the block, where it can judge lines: they are UTF-8. */
  get kernel(): Kernel | undefined {
    return this.#kernel
  }

  /**
   * Passes over lines that are clean beyond doubt, as many as the kernel can at once.
   *
   * @returns where the first other line begins, or the end of the block; `passed` tells how many lines
   *   were passed over
   */
  passClean(start: number): number {
    this.passed = 0
    if (this.#kernel === undefined) return start
    const { run } = this.#kernel
    const maxDepth = Math.min(this.#policy.maxDepth, KERNEL_DEPTH)
    const next = run.cleanLines(start, this.#blockEnd, maxDepth, this.#comparesKeys)
    this.passed = run.lineCount()
    if (this.passed > 0) {
      this.end = next - 1
      this.terminated = true
      this.problems = NONE
    }
    return next
  }

  /**
   * Judges the line that begins at `start`; `end`, `terminated` and `problems` tell the rest.
   *
   * @returns whether the line is clean
   */
  line(start: number): boolean {
    if (this.#isUtf8) {
      const bytes = this.#bytes
      let at = this.scanner.value(start)
      if (at >= 0) {
        while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d) at++
        const { suspect, depth } = this.scanner
        if (
          bytes[at] === 0x0a &&
          at < this.#blockEnd &&
          (!suspect || this.#lenient) &&
          depth <= this.#policy.maxDepth
        ) {
          this.end = at
          this.terminated = true
          this.problems = NONE
          return true
        }
      }
    }
    return this.#carefully(start)
  }

  #carefully(start: number): boolean {
    const bytes = this.#bytes
    const lineFeed = bytes.indexOf(0x0a, start)
    this.terminated = lineFeed >= 0 && lineFeed < this.#blockEnd
    this.end = this.terminated ? lineFeed : this.#blockEnd
    const found = this.#problemsOf(start)
    this.problems = found.filter((problem) => !this.#policy.allow.has(problem.code))
    return this.problems.length === 0
  }

  #problemsOf(lineStart: number): LineProblem[] {
    const { terminated, end } = this
    const bytes = this.#bytes
    const problems: LineProblem[] = []
    let start = lineStart
    if (hasBom(bytes, start, end)) {
      problems.push({ code: 'bom', at: start })
      start += 3
      if (!terminated && start === end) return problems
    }
    if (!this.#isValue(start)) {
      const problem = grammarProblem(bytes, start, end, terminated)
      if (problem === undefined) throw new Error('the two passes disagree about a line')
      return [...problems, problem]
    }
    const suspect = this.scanner.suspect && !this.#lenient
    if (suspect || this.scanner.depth > this.#policy.maxDepth) {
      problems.push(...this.#secondLook(start))
    }
    return problems
  }

  #isValue(start: number): boolean {
    const { scanner, end } = this
    if (!(this.#isUtf8 || isUtf8(this.#bytes.subarray(start, end)))) return false
    if (!scanner.scan(start, end)) return false
    // An unterminated bare number may be the beginning of a longer one.
    return this.terminated || !endsInNumber(this.#bytes, start, end)
  }

  #secondLook(start: number): LineProblem[] {
    const found = inspectLine(this.#bytes, start, this.end, this.#policy.maxDepth)
    const problems: LineProblem[] = []
    const add = (code: LineCode, at: number): void => {
      if (at >= 0) problems.push({ code, at })
    }
    add('duplicate-key', found.duplicateKey)
    add('lone-surrogate', found.loneSurrogate)
    add('too-deep', found.tooDeep)
    return problems.sort((a, b) => a.at - b.at)
  }
}

/** Whether the value is a bare number that goes up to the very end. */
function endsInNumber(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start
  while (isBlankRange(bytes, at, at + 1)) at++
  const first = bytes[at]!
  const last = bytes[end - 1]!
  return (first === 0x2d || (first >= 0x30 && first <= 0x39)) && last >= 0x30 && last <= 0x39
}

import { readFileSync } from 'node:fs'

/** What a process has used until now. */
export interface Usage {
  cpuSeconds: number
  /** Peak resident memory in bytes. */
  peakMemory: number
}

/** Whether the kernel tells what a process uses where we look. */
export const canWatch = process.platform === 'linux'

const SAMPLE_EVERY = 20
/** The kernel counts CPU time in hundredths of a second for its readers. */
const TICKS = 100

/** Looks at a process again and again; what it saw last is what the process used, all but 20 ms. */
export class ProcessWatch {
  last: Usage | undefined
  #pid: number
  #timer: NodeJS.Timeout

  constructor(pid: number) {
    this.#pid = pid
    this.sample()
    this.#timer = setInterval(() => this.sample(), SAMPLE_EVERY)
  }

  /** Looks now. */
  sample(): Usage | undefined {
    this.last = usageOf(this.#pid) ?? this.last
    return this.last
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

function usageOf(pid: number): Usage | undefined {
  try {
    const peak = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field, the name in parentheses, may hold anything; utime is field 14.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (peak === null) return undefined
    return {
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS,
      peakMemory: Number(peak[1]) * 1024,
    }
  } catch {
    return undefined
  }
}

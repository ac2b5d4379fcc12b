/**
 * A node of the world over its crashes and restarts: its disks stay, everything else is made anew.
 * A crash drops the process with its timers and links; the disks lose what was not durable.
 */
import { assert } from '../src/base/assert.ts'
import type { Clock } from '../src/ports/clock.ts'
import type { Random } from '../src/ports/random.ts'
import type { OrderedStore } from '../src/ports/storage.ts'
import type { Trace, TraceEvent } from '../src/ports/trace.ts'
import { createClock, type ClockSkew } from './clock.ts'
import type { Coverage } from './coverage.ts'
import type { Victim } from './nemesis.ts'
import { SimProcess } from './sim-process.ts'
import type { World } from './world.ts'

/** What a node's program gets, besides its transports. */
export interface HostPorts {
  readonly process: SimProcess
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
}

/** A disk over crashes. */
export interface HostDisk {
  /** The store as a process that starts now finds it. */
  open(process: SimProcess): OrderedStore
  /** The process is gone: what was not durable may be lost. Returns how many writes were. */
  crash(): number
  /** Called when a write begins. */
  onWrite: () => void
}

/** What runs on a node. */
export interface Program {
  /** Ends it in an orderly way. */
  stop(): Promise<void>
}

export interface HostParts<P extends Program> {
  readonly world: World
  readonly coverage: Coverage
  readonly name: string
  readonly skew: ClockSkew
  readonly disks: readonly HostDisk[]
  /** Starts the program on what the disks hold. */
  open(ports: HostPorts): Promise<P>
  /** The process is gone. */
  onDown(): void
  onStart(): void
  onTrace(event: TraceEvent): void
  /** A program that will not start is a failure of the run. */
  onFailed(error: unknown): void
}

export class NodeHost<P extends Program> implements Victim {
  readonly name: string
  readonly #parts: HostParts<P>
  #process: SimProcess | undefined
  #program: P | undefined
  #starts = 0
  #strike: (() => void) | undefined

  constructor(parts: HostParts<P>) {
    this.#parts = parts
    this.name = parts.name
    for (const disk of parts.disks) {
      disk.onWrite = () => {
        const strike = this.#strike
        this.#strike = undefined
        strike?.()
      }
    }
  }

  /** The program, once it is open. */
  get program(): P | undefined {
    return this.#program
  }

  isUp(): boolean {
    return this.#process !== undefined
  }

  restart(): void {
    assert(this.#process === undefined, 'node-host: started twice')
    const { world, skew, name, open, onStart, onFailed } = this.#parts
    this.#starts += 1
    const process = new SimProcess(world, name)
    this.#process = process
    const random = world.random.fork(`${name} start ${this.#starts}`)
    onStart()
    const clock = createClock(process, skew, random.fork('clock'))
    const trace = this.#traceOf(process)
    open({ process, clock, random: random.fork('node'), trace }).then(
      (program) => {
        if (process.isAlive) this.#program = program
      },
      (error: unknown) => {
        if (process.isAlive) onFailed(error)
      },
    )
  }

  crash(): void {
    const process = this.#process
    assert(process !== undefined, 'node-host: crashed while it was down')
    process.kill()
    this.#down()
  }

  onNextWrite(strike: () => void): void {
    this.#strike = strike
  }

  pause(lengthMicros: number): void {
    this.#process?.pause(lengthMicros)
  }

  stop(onEnded: () => void): void {
    const { world } = this.#parts
    const process = this.#process
    const program = this.#program
    if (program === undefined) return
    program.stop().then(
      () => {
        // It may have crashed, and even come back, while it was stopping.
        if (process === undefined || this.#process !== process) return
        this.crash()
        onEnded()
      },
      (error: unknown) => {
        if (process?.isAlive === true) world.fail(error)
      },
    )
  }

  #down(): void {
    const { disks, coverage, onDown } = this.#parts
    this.#process = undefined
    this.#program = undefined
    this.#strike = undefined
    onDown()
    for (const disk of disks) {
      const lost = disk.crash()
      if (lost > 0) coverage.count('lost-write', lost)
    }
  }

  #traceOf(process: SimProcess): Trace {
    const { world, coverage, name, onTrace } = this.#parts
    return {
      emit(event) {
        assert(process.isAlive, 'node-host: a dead process leaves a trace')
        world.hash.text(name)
        world.hash.value(event)
        onTrace(event)
      },
      mark(mark) {
        coverage.count(mark)
      },
    }
  }
}

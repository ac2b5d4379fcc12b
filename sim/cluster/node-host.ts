/**
 * A node of the world over its crashes and restarts: its disks stay, everything else is made anew.
 * A crash drops the process with its timers and links; the disks lose what was not durable.
 */
import { assert } from '../../src/base/assert.ts'
import { ownVersions } from '../../src/base/cluster-version.ts'
import type { Clock } from '../../src/ports/clock.ts'
import type { Random } from '../../src/ports/random.ts'
import type { Journal } from '../../src/ports/journal.ts'
import type { OrderedStore } from '../../src/ports/storage.ts'
import type { Trace, TraceEvent } from '../../src/ports/trace.ts'
import { startDamage } from '../checkers/start-checker.ts'
import { createClock, MachineClock, readingAt, type ClockSkew } from '../world/clock.ts'
import type { Coverage } from '../coverage.ts'
import type { Fate, SimDisk } from '../world/disk.ts'
import type { LogDisk } from '../world/log-disk.ts'
import type { DiskName } from '../faults/fault.ts'
import { SimProcess, type Turn } from '../world/sim-process.ts'
import { CostMeter, isStep, type TimeOptions } from '../world/turn-costs.ts'
import type { World } from '../world/world.ts'

/** The ports that a node's program gets besides its transports. */
export interface HostPorts {
  readonly process: SimProcess
  readonly clock: Clock
  readonly random: Random
  readonly trace: Trace
  /** The program must stop: its disk refused, or its peers will not have it. */
  fail(reason: unknown): void
}

/** A disk over crashes. */
export interface DiskHost<Disk> {
  /** For faults that damage it. */
  readonly disk: Disk
  /**
   * The process is gone, and writes that were not durable may be lost. Returns how many writes
   * those were.
   */
  crash(): number
  /** Every write takes this much longer. */
  slowDown(extraMicros: number): void
  /** The fate of a write that is under way at the next crash; undefined: that is drawn. */
  decideFate(fate: Fate | undefined): void
  /** Called when a write begins. */
  onWrite: () => void
  /** Every read waits this much longer, on average; 0: as usual. */
  slowReads(extraMicros: number): void
  /** Called when a process reads rows that may not be at hand. Returns whether they are not. */
  onRead: () => boolean
  /** Called when a read begins to wait for the disk. */
  onReadWait: () => void
}

export interface HostDisk extends DiskHost<SimDisk> {
  /** The store as a process that starts now finds it. */
  open(process: SimProcess): OrderedStore
}

export interface HostLog extends DiskHost<LogDisk> {
  /** The journal as a process that starts now finds it. */
  openJournal(process: SimProcess): Journal | Promise<Journal>
}

export interface HostDisks extends Readonly<Record<DiskName, DiskHost<LogDisk>>> {
  readonly data: DiskHost<SimDisk>
}

/** The program of a node. */
export interface Program {
  /** Ends it in an orderly way. */
  stop(): Promise<void>
}

export interface HostParts<P extends Program> {
  readonly world: World
  readonly coverage: Coverage
  readonly name: string
  readonly skew: ClockSkew
  readonly disks: HostDisks
  readonly times: TimeOptions
  /** Starts the program on what the disks hold. */
  open(ports: HostPorts): Promise<P>
  /** The process is gone. */
  onDown(): void
  onStart(): void
  /** The program is open, and has found nothing wrong. */
  onOpen(): void
  onTrace(event: TraceEvent): void
  /** A turn is over that cost something. */
  onTurn(turn: Turn): void
  /** The program would not start, or has to stop; its process is still there. */
  onFailed(error: unknown): void
}

export class NodeHost<P extends Program> {
  readonly name: string
  readonly disks: HostDisks
  readonly machine: MachineClock = new MachineClock()
  /** The last cluster version that the build knows which its next start runs. */
  build: number = ownVersions.max
  readonly #parts: HostParts<P>
  #runs = 0
  #process: SimProcess | undefined
  #program: P | undefined
  #starts = 0
  #strike: ((disk: DiskName) => void) | undefined
  #readStrike: (() => void) | undefined
  #switchStrike: (() => void) | undefined
  /** Why it must not start: for a while, for good, or until it gets a seat. */
  #held: 'held' | 'retired' | 'lost' | 'spare' | 'waiting' | undefined
  #seat: number | undefined

  constructor(parts: HostParts<P>) {
    this.#parts = parts
    this.name = parts.name
    this.disks = parts.disks
    for (const name of ['log', 'data'] as const) {
      parts.disks[name].onWrite = () => {
        this.#strike?.(name)
      }
      parts.disks[name].onRead = () => this.#onRead()
      parts.disks[name].onReadWait = () => {
        parts.coverage.count('waited for a read')
      }
    }
  }

  /** The program, once it is open. */
  get program(): P | undefined {
    return this.#program
  }

  /** Its clocks as it saw them last, without its noticing; undefined while it is down. */
  get reading(): { readonly now: number; readonly wall: number } | undefined {
    return this.#process && this.readingAt(this.#process.seenMicros)
  }

  /**
   * The moment at which it is: ahead of the world's while it is busy; undefined while it is down.
   */
  get nowMicros(): number | undefined {
    return this.#process?.nowMicros
  }

  readingAt(nowMicros: number): { readonly now: number; readonly wall: number } {
    return readingAt(nowMicros, this.#parts.skew, this.machine)
  }

  isUp(): boolean {
    return this.#process !== undefined
  }

  /** The last cluster version that the build knows which runs, or ran last; 0: none has run. */
  get actsAs(): number {
    return this.#runs
  }

  /** It refused to start, or its peers refused it, and rightly: it stays down. Or it is a spare, or its set has yet to come. */
  get isRetired(): boolean {
    return this.#held === 'retired' || this.#held === 'spare' || this.isWaiting
  }

  /** Its set has yet to come. */
  get isWaiting(): boolean {
    return this.#held === 'waiting'
  }

  /** It stays down until its set has come. */
  waitForSet(): void {
    this.#held = 'waiting'
  }

  /** Its set has come. */
  begin(): void {
    if (!this.isWaiting) return
    this.#held = undefined
    this.restart()
  }

  retire(): void {
    if (this.isUp()) this.crash()
    this.#held = 'retired'
  }

  /** The seat that it is started with: until its store has been made. */
  get seat(): number | undefined {
    return this.#seat
  }

  /** It and its disks are gone for good: it stays down until it gets a seat, whatever it was before. */
  lose(): void {
    if (this.isUp()) this.crash()
    for (const name of ['log', 'data'] as const) this.disks[name].disk.restore(new Map())
    this.#held = 'lost'
  }

  /** It has no part in the cluster, and no store: it stays down until it gets a seat. */
  becomeSpare(): void {
    this.lose()
    this.#held = 'spare'
  }

  /** Starts it on its empty disks, as the store that is to have this seat. */
  takeSeat(seat: number): void {
    assert(
      this.#held === 'lost' || this.#held === 'spare',
      'node-host: a seat for a node that has a store',
    )
    this.#held = undefined
    this.#seat = seat
    this.restart()
  }

  /** It is not started until it is released. */
  hold(): void {
    this.#held ??= 'held'
  }

  release(): void {
    if (this.#held === 'held') this.#held = undefined
  }

  /** Starts the node, unless it is up, held or retired, or waits for a seat. */
  restart(): void {
    if (this.#process !== undefined || this.#held !== undefined) return
    const { world, coverage, skew, name, times, open, onStart, onOpen, onTurn } = this.#parts
    this.#starts += 1
    this.#runs = this.build
    const process = new SimProcess(
      world,
      name,
      times.costFactor > 0 ? new CostMeter(times) : undefined,
    )
    process.onTurn = onTurn
    process.onWait = () => {
      coverage.count('waited for a turn')
    }
    this.#process = process
    const random = world.random.fork(`${name} start ${this.#starts}`)
    onStart()
    const clock = createClock(process, skew, random.fork('clock'), this.machine)
    const trace = this.#makeTrace(process)
    let hasFailed = false
    const fail = (reason: unknown): void => {
      hasFailed = true
      this.#failed(process, reason)
    }
    open({ process, clock, random: random.fork('node'), trace, fail }).then((program) => {
      if (!process.isAlive) return
      this.#program = program
      this.#seat = undefined
      if (hasFailed) return
      const damage = startDamage(this.#parts.name, this.disks.data.disk)
      if (damage !== undefined) this.#parts.world.fail(damage)
      onOpen()
    }, fail)
  }

  /** In an event of its own: the caller is in the middle of the process's work. */
  #failed(process: SimProcess, reason: unknown): void {
    const { world, name, onFailed } = this.#parts
    world.schedule(0, `fails ${name}`, () => {
      if (process.isAlive) onFailed(reason)
    })
  }

  crash(): void {
    const process = this.#process
    assert(process !== undefined, 'node-host: crashed while it was down')
    process.kill()
    this.#down()
  }

  /** Calls `strike` when a write of its disks begins next, of one of them or any. */
  onNextWrite(strike: () => void, disk?: DiskName): void {
    this.#strike = (name) => {
      if (disk !== undefined && name !== disk) return
      this.#strike = undefined
      strike()
    }
  }

  /** Calls `strike` at the next read of one of its disks, whose rows are then not at hand. */
  onNextRead(strike: () => void): void {
    this.#readStrike = strike
  }

  /** Calls `strike` when it puts a group aside for a snapshot next, in whatever life of it. */
  onNextSwitch(strike: () => void): void {
    this.#switchStrike = strike
  }

  #onSwitch(): void {
    const strike = this.#switchStrike
    this.#switchStrike = undefined
    strike?.()
  }

  #onRead(): boolean {
    const strike = this.#readStrike
    this.#readStrike = undefined
    strike?.()
    return strike !== undefined
  }

  pause(lengthMicros: number): void {
    this.#process?.pause(lengthMicros)
  }

  suspend(lengthMicros: number): void {
    const nowMicros = this.#process?.nowMicros ?? this.#parts.world.nowMicros
    this.machine.suspend(nowMicros, lengthMicros)
    this.pause(lengthMicros)
  }

  resume(): void {
    this.machine.wake(this.#parts.world.nowMicros)
    this.#process?.resume()
  }

  /** Multiplies the time of its work by this factor until it restarts. */
  slowBy(factor: number): void {
    this.#process?.slowBy(factor)
  }

  /** The world itself causes the work of this turn. */
  overlookTurn(): void {
    this.#process?.overlookTurn()
  }

  stall(lengthMicros: number, onStruck: () => void): void {
    this.#process?.stall(lengthMicros, onStruck)
  }

  /** Lets it end by itself, which takes a while; `onEnded` comes unless it crashes meanwhile. */
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
    const { disks, coverage, onDown, world } = this.#parts
    this.machine.wake(world.nowMicros)
    this.#process = undefined
    this.#program = undefined
    this.#strike = undefined
    this.#readStrike = undefined
    onDown()
    for (const disk of [disks.log, disks.data]) {
      const lost = disk.crash()
      if (lost > 0) coverage.count('lost-write', lost)
    }
  }

  #makeTrace(process: SimProcess): Trace {
    const { world, coverage, name, onTrace } = this.#parts
    return {
      emit: (event) => {
        assert(process.isAlive, 'node-host: a dead process leaves a trace')
        world.hash.text(name)
        world.hash.value(event)
        if (isStep(event)) process.work('step', 1)
        onTrace(event)
        if (event.kind === 'aside') this.#onSwitch()
      },
      mark(mark) {
        coverage.count(mark)
      },
    }
  }
}

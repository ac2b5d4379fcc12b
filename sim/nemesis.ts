/**
 * The nemesis: crashes, restarts, partitions, resets, clogs and pauses, each kind at its own pace
 * from its own stream, until the world heals.
 */
import type { Coverage } from './coverage.ts'
import type { SeededRandom } from './random.ts'
import type { FaultPlan } from './swarm.ts'
import type { Weather } from './weather.ts'
import type { World } from './world.ts'

/** What can be done to a node's process. */
export interface Victim {
  readonly name: string
  isUp(): boolean
  crash(): void
  /** Lets it end by itself, which takes a while; `onEnded` comes unless it crashes meanwhile. */
  stop(onEnded: () => void): void
  /** Calls `strike` when a write of its disks is under way next; at most once a process. */
  onNextWrite(strike: () => void): void
  restart(): void
  pause(lengthMicros: number): void
}

export interface NemesisParts {
  readonly world: World
  readonly weather: Weather
  readonly coverage: Coverage
  readonly plan: FaultPlan
  readonly victims: readonly Victim[]
  /** Endpoints that are not victims, but may be cut off: the clients. */
  readonly bystanders: readonly string[]
  resetLink(a: string, b: string): void
}

type WayOfTravel = readonly [from: string, to: string]

export class Nemesis {
  readonly #parts: NemesisParts
  readonly #random: SeededRandom
  #isOver = false

  constructor(parts: NemesisParts) {
    this.#parts = parts
    this.#random = parts.world.random.fork('nemesis')
  }

  start(): void {
    const { plan } = this.#parts
    this.#repeat('crash', plan.crashMeanMicros, (random) => {
      this.#crash(random)
    })
    this.#repeat('partition', plan.partitionMeanMicros, (random) => {
      this.#partition(random)
    })
    this.#repeat('reset', plan.resetMeanMicros, (random) => {
      this.#reset(random)
    })
    this.#repeat('clog', plan.clogMeanMicros, (random) => {
      this.#clog(random)
    })
    this.#repeat('pause', plan.pauseMeanMicros, (random) => {
      this.#pause(random)
    })
  }

  /** No fault from now on; every way is open, every node comes back. */
  heal(): void {
    this.#isOver = true
    this.#parts.weather.heal()
    for (const victim of this.#parts.victims) if (!victim.isUp()) victim.restart()
  }

  #repeat(kind: string, meanMicros: number, strike: (random: SeededRandom) => void): void {
    if (meanMicros === 0) return
    const random = this.#random.fork(kind)
    const again = (): void => {
      this.#parts.world.schedule(random.exponential(meanMicros), kind, () => {
        if (this.#isOver) return
        strike(random)
        again()
      })
    }
    again()
  }

  #crash(random: SeededRandom): void {
    const { coverage, plan } = this.#parts
    const up = this.#parts.victims.filter((victim) => victim.isUp())
    if (up.length === 0) return
    if (random.chance(plan.orderlyStops)) {
      this.#stop(random.pick(up), random)
      return
    }
    const isAll = random.chance(plan.crashAll)
    if (isAll) coverage.count('crash-all')
    const victims = isAll ? up : [random.pick(up)]
    if (!random.chance(plan.crashInWrite)) {
      for (const victim of victims) this.#strikeDown(victim, random)
      return
    }
    for (const victim of victims) {
      // Two writes are often begun in one moment: a little later both are under way.
      const delayMicros = random.chance(500_000) ? 0 : random.int(1, 200)
      victim.onNextWrite(() => {
        this.#parts.world.schedule(delayMicros, 'crash in write', () => {
          if (victim.isUp() && !this.#isOver) this.#strikeDown(victim, random)
        })
      })
    }
  }

  #stop(victim: Victim, random: SeededRandom): void {
    this.#parts.coverage.count('stop')
    victim.stop(() => {
      if (this.#isOver) victim.restart()
      else this.#restartLater(victim, random)
    })
  }

  #strikeDown(victim: Victim, random: SeededRandom): void {
    this.#parts.coverage.count('crash')
    victim.crash()
    this.#restartLater(victim, random)
  }

  #restartLater(victim: Victim, random: SeededRandom): void {
    const { world, coverage, plan } = this.#parts
    world.schedule(random.exponential(plan.restartMeanMicros), 'restart', () => {
      if (victim.isUp()) return
      coverage.count('restart')
      victim.restart()
    })
  }

  #partition(random: SeededRandom): void {
    const { world, weather, coverage, plan } = this.#parts
    const isOneWay = random.chance(plan.oneWay)
    coverage.count(isOneWay ? 'one-way' : 'partition')
    const ways = isOneWay ? this.#oneWay(random) : this.#split(random)
    const isReset = random.chance(plan.partitionResets)
    for (const [from, to] of ways) {
      weather.cut(from, to)
      if (isReset) this.#parts.resetLink(from, to)
    }
    world.schedule(random.exponential(plan.partitionLengthMeanMicros), 'mend', () => {
      for (const [from, to] of ways) weather.mend(from, to)
    })
  }

  /** Two sides that do not hear each other; sometimes one side is a single node. */
  #split(random: SeededRandom): WayOfTravel[] {
    const names = random.shuffle(this.#endpoints())
    const size = random.chance(500_000) ? 1 : random.int(1, names.length - 1)
    const side = new Set(names.slice(0, size))
    return this.#ways().filter(([from, to]) => side.has(from) !== side.has(to))
  }

  /** Some ways out of one endpoint, or some ways into it, are cut; the other direction is not. */
  #oneWay(random: SeededRandom): WayOfTravel[] {
    const name = random.pick(this.#endpoints())
    const isOut = random.chance(500_000)
    const ways = this.#ways().filter(([from, to]) => (isOut ? from : to) === name)
    return random.shuffle(ways).slice(0, random.int(1, ways.length))
  }

  #reset(random: SeededRandom): void {
    const [from, to] = random.pick(this.#ways())
    this.#parts.coverage.count('reset')
    this.#parts.resetLink(from, to)
  }

  #clog(random: SeededRandom): void {
    const { world, weather, coverage, plan } = this.#parts
    const name = random.pick(this.#endpoints())
    const untilMicros = world.nowMicros + random.exponential(plan.clogLengthMeanMicros)
    coverage.count('clog')
    const isWhole = random.chance(300_000)
    for (const [from, to] of this.#ways()) {
      if (from === name && (isWhole || random.chance(500_000))) weather.clog(from, to, untilMicros)
    }
  }

  #pause(random: SeededRandom): void {
    const { victims, coverage, plan } = this.#parts
    const up = victims.filter((victim) => victim.isUp())
    if (up.length === 0) return
    coverage.count('pause')
    random.pick(up).pause(random.exponential(plan.pauseLengthMeanMicros))
  }

  #endpoints(): string[] {
    return [...this.#parts.victims.map((victim) => victim.name), ...this.#parts.bystanders]
  }

  /** Both directions between nodes, and between nodes and bystanders. */
  #ways(): WayOfTravel[] {
    const nodes = this.#parts.victims.map((victim) => victim.name)
    const between = nodes.flatMap((from) =>
      nodes.filter((to) => to !== from).map((to): WayOfTravel => [from, to]),
    )
    const aside = nodes.flatMap((node) =>
      this.#parts.bystanders.flatMap((other): WayOfTravel[] => [
        [node, other],
        [other, node],
      ]),
    )
    return [...between, ...aside]
  }
}

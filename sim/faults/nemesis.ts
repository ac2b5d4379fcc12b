/**
 * The nemesis: does to the world what the list of faults says, each at its moment, until the world
 * heals. It draws nothing; a fault that does not apply, such as the crash of a node that is down,
 * is skipped.
 *
 * Healing comes in two steps: a core of nodes heals while the rest stays broken for good; then all.
 */
import { unreachable } from '../../src/base/assert.ts'
import {
  clockKinds,
  diskKinds,
  inOrder,
  isOfKind,
  membersKinds,
  networkKinds,
  processKinds,
  upgradeKinds,
  type Fault,
} from './fault.ts'
import type { Context, Surroundings, Victim } from './nemesis-context.ts'
import { calmDisks, putDisksRight, strikeDisk, takeImages } from './nemesis-disk.ts'
import { strikeMembers } from './nemesis-members.ts'
import { strikeNetwork } from './nemesis-network.ts'
import { strikeClock, strikeLoad, strikeProcess } from './nemesis-process.ts'
import { strikeUpgrade } from './nemesis-upgrade.ts'

/** How nodes stay broken while a core of the others must go on. */
export const brokenKinds = ['down', 'cut', 'deaf', 'mute', 'paused'] as const

export type Broken = (typeof brokenKinds)[number]

export interface NemesisParts extends Surroundings {
  readonly faults: readonly Fault[]
}

/** Longer than any phase; the healing wakes a node that is paused like that. */
const forGoodMicros = 3_600_000_000

export class Nemesis {
  readonly #context: Context
  readonly #faults: readonly Fault[]
  #isOver = false

  constructor({ faults, ...surroundings }: NemesisParts) {
    this.#faults = inOrder(faults)
    const victims = new Map(surroundings.victims.map((victim) => [victim.name, victim]))
    const inService = (node: string): Victim | undefined => {
      const victim = victims.get(node)
      return victim?.isRetired === false ? victim : undefined
    }
    const { world, coverage } = surroundings
    const after: Context['after'] = (delayMicros, label, act) => {
      world.schedule(Math.max(0, delayMicros), label, () => {
        if (!this.#isOver) act()
      })
    }
    this.#context = {
      ...surroundings,
      after,
      victim: inService,
      images: new Map(),
      finalized: new Set(),
      hasGoneBack: false,
      standing(node) {
        const victim = inService(node)
        return victim?.isUp() === true ? victim : undefined
      },
      strikeDown: (victim, downMicros) => {
        if (victim.isUp()) victim.crash()
        const down = surroundings.victims.filter((one) => !one.isUp()).length
        if (down === surroundings.victims.length) coverage.count('all-down')
        else if (down * 2 > surroundings.victims.length) coverage.count('majority-down')
        // A node that ends by itself while the world heals comes back at once.
        if (this.#isOver) return victim.restart()
        after(downMicros, 'restart', () => {
          if (victim.isUp()) return
          coverage.count('restart')
          victim.restart()
        })
      },
      count(fault) {
        coverage.count(fault.name ?? fault.kind)
      },
    }
  }

  start(): void {
    const { world, after } = this.#context
    for (const fault of this.#faults) {
      takeImages(fault, this.#context)
      after(fault.atMicros - world.nowMicros, fault.kind, () => {
        strike(fault, this.#context)
      })
    }
  }

  /** No fault from now on. Nodes of the core are well; the others stay broken until all heals. */
  healCore(core: readonly string[], broken: Broken): void {
    this.#isOver = true
    const { victims, load, weather } = this.#context
    weather.heal()
    load.heal()
    putDisksRight(this.#context)
    for (const victim of victims) {
      calmDisks(victim)
      victim.resume()
      if (!core.includes(victim.name)) this.#breakForGood(victim, broken)
    }
    for (const victim of victims) victim.restart()
  }

  /** No fault from now on; every way is open, every node comes back. */
  heal(): void {
    this.healCore(
      this.#context.victims.map((victim) => victim.name),
      'down',
    )
    for (const victim of this.#context.victims) {
      victim.release()
      victim.restart()
    }
  }

  #breakForGood(victim: Victim, broken: Broken): void {
    switch (broken) {
      case 'down':
        if (victim.isUp()) victim.crash()
        return victim.hold()
      case 'paused':
        return victim.pause(forGoodMicros)
      case 'cut':
        this.#cutOff(victim.name, true)
        return this.#cutOff(victim.name, false)
      case 'deaf':
        return this.#cutOff(victim.name, false)
      case 'mute':
        return this.#cutOff(victim.name, true)
      default:
        return unreachable(broken)
    }
  }

  #cutOff(node: string, isOut: boolean): void {
    const { victims, clients, weather } = this.#context
    for (const other of [...victims.map((victim) => victim.name), ...clients]) {
      if (isOut) weather.cut(node, other)
      else weather.cut(other, node)
    }
  }
}

function strike(fault: Fault, context: Context): void {
  if (isOfKind(fault, processKinds)) strikeProcess(fault, context)
  else if (isOfKind(fault, networkKinds)) strikeNetwork(fault, context)
  else if (isOfKind(fault, diskKinds)) strikeDisk(fault, context)
  else if (isOfKind(fault, clockKinds)) strikeClock(fault, context)
  else if (isOfKind(fault, membersKinds)) strikeMembers(fault, context)
  else if (isOfKind(fault, upgradeKinds)) strikeUpgrade(fault, context)
  else strikeLoad(fault, context)
}

/** Rounds of comparing and of scrubbing that an operator begins: their numbers, and calls that join them. */
import { expect, test } from 'vitest'
import { nodeId } from '../../src/base/ids.ts'
import { Upkeep } from '../../src/replica/upkeep.ts'
import { a, b, settled } from '../peers/snapshot-kit.ts'

/** Work that a test ends. */
class Work {
  begun = 0
  end: () => void = () => undefined
  #underWay: Promise<void> | undefined

  get isUnderWay(): boolean {
    return this.#underWay !== undefined
  }

  now(): Promise<void> {
    this.#underWay ??= new Promise((resolve) => {
      this.begun += 1
      this.end = () => {
        this.#underWay = undefined
        resolve()
      }
    })
    return this.#underWay
  }
}

class Bench {
  readonly comparison = new Work()
  readonly files = new Work()
  readonly rows = new Work()
  readonly resolved: unknown[] = []
  readonly upkeep: Upkeep

  constructor() {
    this.upkeep = new Upkeep({
      comparing: {
        comparison: this.comparison,
        rows: withFigures(this.rows, {
          ...{ rowScrubPasses: 4, rowScrubbedGroups: 2, rowScrubWrong: 0 },
        }),
        figures: {
          ...{ rounds: 0, groups: 0, differences: 0, unequal: 0, uncompared: 0, mended: 0 },
          ...{ isUnderWay: false, isCounting: false, countedGroups: 4 },
          ...{ aside: 1, open: 0, undecided: 101 },
        },
        healing: { asides: [a] },
        differences: {
          undecided: Array.from({ length: 101 }, () => b),
          resolve: (...asked) => Promise.resolve(void this.resolved.push(asked)),
        },
      },
      scrubber: withFigures(this.files, {
        ...{ scrubbedBytes: 1, scrubbedPart: 1, scrubPasses: 3 },
        ...{ logScrubbedBytes: 1, logScrubbedPart: 1, logScrubPasses: 3 },
      }),
      log: { identity: { incarnation: 7 }, damages: [] },
    })
  }
}

interface WithFigures<Figures> {
  readonly figures: Figures
  readonly isUnderWay: boolean
  now(): Promise<void>
}

function withFigures<Figures>(work: Work, figures: Figures): WithFigures<Figures> {
  return {
    figures,
    now: () => work.now(),
    get isUnderWay() {
      return work.isUnderWay
    },
  }
}

test('HEAL-2: two calls at once share a round, and the next one has a number of its own', async () => {
  const { upkeep, comparison } = new Bench()
  expect(upkeep.compareReport).toMatchObject({ incarnation: 7, ended: 0 })
  expect(upkeep.compare()).toEqual({ round: 1, isJoined: false })
  expect(upkeep.compare()).toEqual({ round: 1, isJoined: true })
  expect(comparison.begun).toBe(1)
  comparison.end()
  await settled()
  expect(upkeep.compareReport.ended).toBe(1)
  expect(upkeep.compare()).toEqual({ round: 2, isJoined: false })
  expect([comparison.begun, upkeep.compareReport.ended]).toEqual([2, 1])
})

test('HEAL-2: a call joins the round that the node has begun by itself, and hears of its end', async () => {
  const { upkeep, comparison } = new Bench()
  void comparison.now()
  expect(upkeep.compare()).toEqual({ round: 1, isJoined: true })
  comparison.end()
  await settled()
  expect([comparison.begun, upkeep.compareReport.ended]).toEqual([1, 1])
})

test('HEAL-7: a scrub is over when the files are read and the rows are counted', async () => {
  const { upkeep, files, rows } = new Bench()
  expect(upkeep.scrub()).toEqual({ round: 1, isJoined: false })
  expect(upkeep.scrubReport).toMatchObject({ isUnderWay: true, scrubPasses: 3, rowScrubPasses: 4 })
  files.end()
  await settled()
  expect(upkeep.scrubReport).toMatchObject({ isUnderWay: true, ended: 0 })
  rows.end()
  await settled()
  expect(upkeep.scrubReport).toMatchObject({ isUnderWay: false, ended: 1, aside: 1 })
})

test('HEAL-8: reports have names of groups in hexadecimal, a hundred at most', async () => {
  const { upkeep, resolved } = new Bench()
  const { asideGroups, undecidedGroups } = upkeep.groupLists
  expect(asideGroups).toEqual([Buffer.from(a, 'latin1').toString('hex')])
  expect(undecidedGroups).toHaveLength(100)
  await upkeep.resolve(b, nodeId('n2'))
  expect(resolved).toEqual([[b, nodeId('n2')]])
})

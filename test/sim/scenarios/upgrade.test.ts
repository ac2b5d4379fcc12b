/** Nodes of two builds in one cluster: upgraded one by one in each order, back again, and the next cluster version. */
import { expect, test } from 'vitest'
import type { ScenarioBuilder } from '../../../sim/scenarios/scenario-builder.ts'
import { run, threeNodes } from './story.ts'

/** Each client writes a cell every 100 ms. */
function underLoad(story: ScenarioBuilder, fromMs: number, toMs: number): ScenarioBuilder {
  for (let ms = fromMs, refKey = 0; ms < toMs; ms += 100, refKey++) {
    story.at(ms).put('c1', { refKey })
    story.at(ms + 30).put('c2', { shard: 1, refKey })
  }
  return story
}

const orders = [
  ...[['n1', 'n2', 'n3'] as const, ['n1', 'n3', 'n2'] as const, ['n2', 'n1', 'n3'] as const],
  ...[['n2', 'n3', 'n1'] as const, ['n3', 'n1', 'n2'] as const, ['n3', 'n2', 'n1'] as const],
]

test.each(orders)(
  'UPG-2, UPG-3: %s, %s, %s are upgraded one by one under load, and only then all finalize',
  async (...order) => {
    const title = `UPG-3: upgraded in the order ${order.join(', ')}`
    const story = underLoad(threeNodes(title).firstBuild(1).lasting(5_000), 100, 4_500)
    for (const [place, node] of order.entries()) {
      story.at(500 + 1_000 * place).changeBuild(node, 2, 100)
      // Asked of a node of either build, while another one runs the build before.
      for (const asked of order) story.at(900 + 1_000 * place).finalize(asked)
    }
    const { result } = await run(story.at(3_800).finalize(order[0]))
    const { coverage } = result
    expect(coverage).toMatchObject({ 'change-build': 3, version_raised: 1, version_applied: 3 })
    expect(coverage['finalize refused for a build']).toBe(6)
    expect(coverage['upgraded']).toBe(1)
  },
)

test('UPG-3: a node goes back to the build before, and the version waits for it', async () => {
  const story = threeNodes('UPG-3: back to the build before').firstBuild(1).lasting(6_000)
  underLoad(story, 100, 5_000)
  for (const [place, node] of ['n1', 'n2', 'n3'].entries()) {
    story.at(300 + 400 * place).changeBuild(node, 2, 100)
  }
  story.at(2_000).changeBuild('n2', 1, 100).at(3_500).changeBuild('n2', 2, 100)
  const { result } = await run(story.at(4_500).finalize('n3'))
  const back = { 'back to an earlier build': 1, 'change-build': 5, upgraded: 1 }
  expect(result.coverage).toMatchObject({ ...back, version_applied: 3 })
})

test('UPG-2: the version outlives new epochs, a lost disk and a node that is added', async () => {
  const story = threeNodes('UPG-2: the version stays').firstBuild(1).spares(1).lasting(14_000)
  underLoad(story, 100, 8_000)
  for (const [place, node] of ['n1', 'n2', 'n3'].entries()) {
    story.at(300 + 400 * place).changeBuild(node, 2, 100)
  }
  story.at(2_500).finalize('n1').at(3_500).renew('n2').at(5_000).replace('n3', 200)
  const { result } = await run(story.at(9_500).add('n4', 100))
  expect(result.coverage).toMatchObject({ version_raised: 1, upgraded: 1, renew: 1, replace: 1 })
  expect(result.coverage['version_applied']).toBeGreaterThanOrEqual(5)
})

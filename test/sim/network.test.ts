import { expect, test } from 'vitest'
import type { Transport, TransportHandlers } from '../../src/ports/transport.ts'
import { Coverage } from '../../sim/coverage.ts'
import { Network } from '../../sim/world/network.ts'
import { SimProcess } from '../../sim/world/sim-process.ts'
import { Weather, type LinkConditions } from '../../sim/world/weather.ts'
import { World } from '../../sim/world/world.ts'

const second = 1_000_000
const never = (): boolean => false

const calm: LinkConditions = {
  ...{ delayMinMicros: 100, delayMeanMicros: 500, tail: 0, tailFactor: 10 },
  ...{ reorder: 0, drop: 0, duplicate: 0, late: 0, lateMeanMicros: 0, survive: 0 },
  ...{ noticeMeanMicros: 1_000, reconnectMeanMicros: 1_000, framesUnderWayMax: 1_000 },
}

const codec = {
  encode: (frame: string) => Buffer.from(frame),
  decode: (bytes: Uint8Array) => Buffer.from(bytes).toString(),
  refused: (frame: string) => numbersAfter('refused ', frame),
  requests: (frame: string) => numbersAfter('ask ', frame),
}

function numbersAfter(word: string, frame: string): readonly number[] {
  return frame.startsWith(word) ? [Number(frame.slice(word.length))] : []
}

interface Place {
  readonly world: World
  readonly weather: Weather
  readonly network: Network<string>
  readonly coverage: Coverage
}

function place(
  conditions: Partial<LinkConditions>,
  seed = 1,
  keepsCopies = false,
  hasEchoes = false,
): Place {
  const world = new World(seed, 1_000_000)
  const weather = new Weather({ ...calm, ...conditions })
  const coverage = new Coverage()
  const observer = { onSent: () => undefined, onDelivered: () => undefined }
  const name = 'peers'
  const kinds = { keepsCopies, hasEchoes }
  const network = new Network({ world, weather, coverage, codec, observer, name, ...kinds })
  return { world, weather, network, coverage }
}

interface End {
  readonly process: SimProcess
  readonly transport: Transport<string>
  readonly frames: string[]
  readonly links: string[]
}

/** Joins the network; `refusal` is what it tells every peer that wants a link. */
function join(
  { world, network }: Place,
  name: string,
  dials: readonly string[],
  more: Partial<TransportHandlers<string>> = {},
): End {
  const process = new SimProcess(world, name)
  const transport = network.attach(process, dials)
  const frames: string[] = []
  const links: string[] = []
  transport.start({
    self: () => ({ durableFlush: name.length }),
    admit: () => undefined,
    onRefused: (peer, reason) => links.push(`${peer} refused: ${reason}`),
    onLink: (peer, state) => links.push(`${peer} ${state}`),
    onFrame: (from, frame) => frames.push(`${from}:${frame}`),
    ...more,
  })
  return { process, transport, frames, links }
}

/** Sends `count` numbered frames, one a millisecond. */
function sendMany({ world }: Place, from: End, to: string, count: number): void {
  for (let i = 0; i < count; i++) {
    world.schedule(500_000 + i * 1_000, 'send', () => void from.transport.send(to, String(i)))
  }
}

function expected(from: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${from}:${i}`)
}

test('on a calm link every frame arrives once, whole, in order', async () => {
  const here = place({})
  const a = join(here, 'a', ['b'])
  const b = join(here, 'b', [])
  sendMany(here, a, 'b', 200)
  await here.world.run(never, 10 * second)
  expect(b.frames).toEqual(expected('a', 200))
  expect([a.links, b.links]).toEqual([['b up'], ['a up']])
})

test('frames are lost, doubled and overtaken, at rates that can be off', async () => {
  const lossy = place({ drop: 200_000 })
  const doubling = place({ duplicate: 300_000, late: 500_000, lateMeanMicros: second })
  const shuffling = place({ reorder: 500_000, delayMeanMicros: 20_000 })
  const results: string[][] = []
  for (const here of [lossy, doubling, shuffling]) {
    const a = join(here, 'a', ['b'])
    const b = join(here, 'b', [])
    sendMany(here, a, 'b', 200)
    await here.world.run(never, 60 * second)
    results.push(b.frames)
  }
  const [lost = [], doubled = [], shuffled = []] = results
  expect(lost.length).toBeLessThan(190)
  expect(lossy.coverage.counts()['drop']).toBe(200 - lost.length)
  expect(doubled.length).toBeGreaterThan(220)
  expect(new Set(doubled).size).toBe(200)
  expect(doubling.coverage.counts()['late-duplicate']).toBeGreaterThan(0)
  expect(shuffled).not.toEqual(expected('a', 200))
  expect([...shuffled].sort()).toEqual(expected('a', 200).sort())
})

test('a cut in one direction loses frames that way only', async () => {
  const here = place({})
  const a = join(here, 'a', ['b'])
  const b = join(here, 'b', [])
  here.world.schedule(490_000, 'cut', () => {
    here.weather.cut('a', 'b')
  })
  sendMany(here, a, 'b', 10)
  sendMany(here, b, 'a', 10)
  await here.world.run(never, 10 * second)
  expect(b.frames).toEqual([])
  expect(a.frames).toEqual(expected('b', 10))
})

test('a clogged way lets nothing through until it is released, then all of it', async () => {
  const here = place({})
  const a = join(here, 'a', ['b'])
  const b = join(here, 'b', [])
  here.world.schedule(490_000, 'clog', () => {
    here.weather.clog('a', 'b', 5 * second)
  })
  sendMany(here, a, 'b', 10)
  await here.world.run(never, 5 * second - 1)
  expect(b.frames).toEqual([])
  await here.world.run(never, 5 * second + 1)
  expect(b.frames).toEqual(expected('a', 10))
})

test('a reset loses what is under way, both sides notice, and the link comes back', async () => {
  const here = place({ delayMinMicros: 5_000 })
  const a = join(here, 'a', ['b'])
  const b = join(here, 'b', [])
  sendMany(here, a, 'b', 100)
  here.world.schedule(550_500, 'reset', () => {
    here.network.reset('b', 'a')
  })
  await here.world.run(never, 10 * second)
  expect(a.links).toEqual(['b up', 'b down', 'b up'])
  expect(b.links).toEqual(['a up', 'a down', 'a up'])
  expect(b.frames.length).toBeLessThan(100)
  expect(b.frames.at(-1)).toBe('a:99')
})

test('with survivors on, a frame of the lost link arrives at the next incarnation', async () => {
  const here = place({ survive: 1_000_000, delayMinMicros: 2_000 })
  const a = join(here, 'a', ['b'])
  const old = join(here, 'b', [])
  here.world.schedule(20_000, 'send', () => {
    here.weather.clog('a', 'b', second)
    a.transport.send('b', 'from before')
  })
  let next: End | undefined
  here.world.schedule(21_000, 'crash', () => {
    old.process.kill()
    here.network.detach('b')
    here.weather.heal()
    next = join(here, 'b', [])
  })
  await here.world.run(never, 10 * second)
  expect(old.frames).toEqual([])
  expect(next?.frames).toEqual(['a:from before'])
  expect(here.coverage.counts()['survivor']).toBe(1)
})

test('TXN-5: with one connection a link, copies of a frame come over one link', async () => {
  const arrivals = [false, true].map(async (keepsCopies) => {
    const rates = { duplicate: 1_000_000, late: 500_000, lateMeanMicros: 100_000, reorder: 500_000 }
    const here = place({ ...rates, survive: 500_000 }, 1, keepsCopies)
    const overLinks = new Map<string, Set<number>>()
    let links = 0
    const a = join(here, 'a', ['b'])
    join(here, 'b', [], {
      onLink: (_, state) => void (links += state === 'up' ? 1 : 0),
      onFrame: (_, frame) => overLinks.set(frame, (overLinks.get(frame) ?? new Set()).add(links)),
    })
    sendMany(here, a, 'b', 1_000)
    for (let i = 0; i < 20; i++) {
      here.world.schedule(500_000 + i * 50_000, 'reset', () => here.network.reset('a', 'b'))
    }
    await here.world.run(never, 20 * second)
    return [...overLinks.values()].filter(({ size }) => size > 1).length
  })
  const [free = 0, kept = 0] = await Promise.all(arrivals)
  expect(free).toBeGreaterThan(20)
  expect(kept).toBe(0)
})

test('a peer that is not admitted learns the reason and gets no link', async () => {
  const here = place({})
  const a = join(here, 'a', ['b'])
  const b = join(here, 'b', [], {
    admit: (peer, info) => (info.durableFlush === 1 ? `stale-disk of ${peer}` : undefined),
  })
  await here.world.run(() => a.links.length > 1, second)
  expect(a.links.every((line) => line === 'b refused: stale-disk of a')).toBe(true)
  expect(a.links.length).toBeGreaterThan(0)
  expect(b.links).toEqual([])
  expect(a.transport.send('b', 'x')).toBe(false)
})

test('a link whose handshake lost its last word is made again', async () => {
  const here = place({ delayMinMicros: 1_000, delayMeanMicros: 0 })
  const a = join(here, 'a', ['b'])
  const b = join(here, 'b', [])
  // Hello and welcome take a millisecond each; the third word leaves after two.
  here.world.schedule(1_500, 'cut', () => {
    here.weather.cut('a', 'b')
  })
  here.world.schedule(2_500, 'mend', () => {
    here.weather.mend('a', 'b')
  })
  await here.world.run(never, second)
  expect(a.links).toEqual(['b up', 'b down', 'b up'])
  expect(b.links).toEqual(['a up'])
})

test('META-1: the same seed gives the same run, another seed another one', async () => {
  const hashOf = async (seed: number): Promise<string> => {
    const here = place({ drop: 100_000, duplicate: 100_000, reorder: 300_000 }, seed)
    const a = join(here, 'a', ['b'])
    join(here, 'b', [])
    sendMany(here, a, 'b', 100)
    await here.world.run(never, 10 * second)
    return here.world.hash.digest()
  }
  expect(await hashOf(5)).toBe(await hashOf(5))
  expect(await hashOf(5)).not.toBe(await hashOf(6))
})

/** When each frame that is sent at 0.5 s and after, one a millisecond, arrives: microseconds late. */
async function delays(here: Place, count: number): Promise<number[]> {
  const arrivals: number[] = []
  const a = join(here, 'a', ['b'])
  join(here, 'b', [], {
    onFrame: (_, frame) => arrivals.push(here.world.nowMicros - 500_000 - Number(frame) * 1_000),
  })
  sendMany(here, a, 'b', count)
  await here.world.run(never, 10 * second)
  return arrivals
}

test('some ways are slower than others all the time', async () => {
  const near = await delays(place({ delayMeanMicros: 0 }), 5)
  const far = await delays(place({ delayMeanMicros: 0, far: 1_000_000, farFactor: 7 }), 5)
  expect(near).toEqual([100, 100, 100, 100, 100])
  expect(far).toEqual([700, 700, 700, 700, 700])
})

test('everything to and from a slow node takes longer, until that is over', async () => {
  const here = place({ delayMeanMicros: 0 })
  here.world.schedule(400_000, 'slow', () => {
    here.weather.slow('b', 30_000, 502_500)
  })
  // A frame that is sent later does not overtake one under way on its link.
  expect(await delays(here, 4)).toEqual([30_100, 30_100, 30_100, 29_100])
  here.weather.slow('b', 30_000, 60 * second)
  expect(here.weather.extraMicros('b', 'a', 11 * second)).toBe(30_000)
  here.weather.heal()
  expect(here.weather.extraMicros('b', 'a', 11 * second)).toBe(0)
})

test('an answer is lost with its connection, and both ends notice', async () => {
  const here = place({})
  const a = join(here, 'a', ['b'])
  const b = join(here, 'b', [])
  here.world.schedule(490_000, 'lose', () => {
    here.network.loseNext('b')
  })
  here.world.schedule(500_000, 'answer', () => void b.transport.send('a', 'answer'))
  await here.world.run(never, 10 * second)
  expect(a.frames).toEqual([])
  expect(here.coverage.counts()['lost-reply']).toBe(1)
  expect([a.links, b.links]).toEqual([
    ['b up', 'b down', 'b up'],
    ['a up', 'a down', 'a up'],
  ])
})

test('a frame sent during a stall leaves when the stall is over', async () => {
  const here = place({ delayMeanMicros: 0 })
  const arrivals: number[] = []
  const a = join(here, 'a', ['b'])
  join(here, 'b', [], { onFrame: () => arrivals.push(here.world.nowMicros) })
  here.world.schedule(500_000, 'acts', () => {
    a.process.stall(40_000, () => undefined)
    a.process.onClockRead()
    a.transport.send('b', 'on an old reading')
  })
  await here.world.run(never, second)
  expect(arrivals).toEqual([540_100])
})

test('an echo brings what was sent long ago once more, and to a link of a client only while it lives', async () => {
  const sent = expected('n1', 3)
  for (const keepsCopies of [false, true]) {
    const there = place({}, 1, keepsCopies, true)
    const [first, other] = [join(there, 'n1', ['n2']), join(there, 'n2', [])]
    sendMany(there, first, 'n2', 3)
    there.world.schedule(2 * second, 'echo', () => there.network.echo('n2', 2))
    there.world.schedule(3 * second, 'reset', () => there.network.reset('n1', 'n2'))
    there.world.schedule(5 * second, 'echo', () => there.network.echo('n2', 64))
    await there.world.run(never, 10 * second)
    const [early, late] = [other.frames.slice(3, 5), other.frames.slice(5)]
    expect(other.frames.slice(0, 3)).toEqual(sent)
    expect(early.length).toBe(2)
    expect(early.every((frame) => sent.includes(frame))).toBe(true)
    expect(late.toSorted()).toEqual(keepsCopies ? [] : sent)
    expect(there.coverage.counts()['echo']).toBe(keepsCopies ? 2 : 5)
  }
})

test('no echo brings what a store sent that the endpoint has lost', async () => {
  const there = place({}, 1, false, true)
  const [first, other] = [join(there, 'n1', ['n2']), join(there, 'n2', [])]
  sendMany(there, first, 'n2', 3)
  there.world.schedule(2 * second, 'store lost', () => there.network.forgetFramesOf('n1'))
  there.world.schedule(3 * second, 'echo', () => there.network.echo('n2', 64))
  await there.world.run(never, 10 * second)
  expect(other.frames).toEqual(expected('n1', 3))
})

test('requests that were refused come once more, over their link, for as long as faults strike', async () => {
  const counts: number[] = []
  for (const ends of ['at peace', 'by a reset', 'by healing']) {
    const there = place({}, 1, true, true)
    const node = join(there, 'n1', [], {
      onFrame(from, frame) {
        node.frames.push(frame)
        const [number = 0] = codec.requests(frame)
        node.transport.send(from, number % 2 === 0 ? `refused ${number}` : `done ${number}`)
      },
    })
    const client = join(there, 'c1', ['n1'])
    for (let number = 1; number <= 40; number++) {
      const atMicros = second + number * 1_000
      there.world.schedule(atMicros, 'ask', () => client.transport.send('n1', `ask ${number}`))
    }
    if (ends === 'by a reset') {
      there.world.schedule(1_060_000, 'reset', () => there.network.reset('c1', 'n1'))
    }
    if (ends === 'by healing') there.weather.heal()
    await there.world.run(never, 100 * second)
    const again = node.frames.slice(40)
    expect(again.every((frame) => Number(frame.slice(4)) % 2 === 0)).toBe(true)
    counts.push(again.length)
    expect(there.coverage.counts()['echo of a refused request'] ?? 0).toBe(again.length)
  }
  const [all = 0, withReset = 0, healed] = counts
  expect(all).toBeGreaterThan(10)
  expect(withReset).toBeLessThan(all)
  expect(healed).toBe(0)
})

test('a node that dies has no events for links that were down already', async () => {
  const counts: number[] = []
  for (const lives of [1, 30]) {
    const there = place({})
    for (let life = 1; life <= lives; life++) {
      join(there, `c${life}`, ['n1'])
      there.world.schedule(life * 10_000, 'death', () => there.network.detach(`c${life}`))
    }
    join(there, 'n1', [])
    await there.world.run(never, 10 * second)
    const before = there.world.eventCount
    there.network.detach('n1')
    await there.world.run(never, 20 * second)
    counts.push(there.world.eventCount - before)
  }
  expect(counts).toEqual([0, 0])
})

test('a late answer to an abandoned dial does not reach the next process of the name', async () => {
  for (let seed = 1; seed <= 30; seed++) {
    // Answers come long after the dialer has given up.
    const there = place({ tail: 1_000_000, tailFactor: 300 }, seed)
    join(there, 'b', [])
    join(there, 'a', ['b'])
    for (let at = 1; at <= 20; at++) {
      there.world.schedule(at * 50_000, 'death', () => {
        there.network.detach('a')
        // It has not started yet, and so cannot be welcomed.
        there.network.attach(new SimProcess(there.world, `a ${at}`), ['b'], 'a')
      })
    }
    expect(await there.world.run(never, 3 * second)).toBe('idle')
  }
})

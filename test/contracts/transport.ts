/**
 * The promises of every transport (`src/ports/transport.ts`), as a suite over two ends of which one dials the
 * other. The real links and the simulated network are held to the same claims. That frames may be lost,
 * doubled or overtaken is not here: the claims hold of a sound network.
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import type { LinkInfo, Transport, TransportHandlers } from '../../src/ports/transport.ts'

/** Where a transport lives: it comes and goes, its place stays. */
export interface TransportEnd {
  /** A transport of this place that has not been started; the one before has been closed. */
  make(): Transport<string>
  /** Whether this side tells of itself in a handshake: nodes do, clients do not. */
  readonly tellsInfo: boolean
}

export interface TransportPair {
  readonly dialer: TransportEnd
  readonly listener: TransportEnd
  /** Lets things happen until it is so; rejects when it does not come so. */
  until(isSo: () => boolean): Promise<void>
  /** Lets things happen for a while that nothing is expected of. */
  idle(): Promise<void>
  remove(): Promise<void>
}

const info: LinkInfo = {
  storeId: '01234567-89ab-4def-8123-456789abcdef',
  incarnation: 3,
  durableFlush: 41,
}

interface Settings {
  /** The reason that a dialer gets for a refused link. */
  readonly reason?: string
  /** The facts that this side tells of itself. */
  readonly own?: LinkInfo
}

/** A started transport, and the calls it has made. It records breaches of the order of calls. */
class End {
  readonly transport: Transport<string>
  readonly tellsInfo: boolean
  readonly links: string[] = []
  readonly infos: LinkInfo[] = []
  readonly frames: string[] = []
  readonly refusals: string[] = []
  readonly breaches: string[] = []
  /** The other end, as this one names it, while the link is up. */
  peer: string | undefined
  /** The reason that a dialer gets for a refused link. */
  reason: string | undefined
  #isClosed = false

  constructor({ make, tellsInfo }: TransportEnd, { reason, own = info }: Settings = {}) {
    this.transport = make()
    this.tellsInfo = tellsInfo
    this.reason = reason
    const handlers: TransportHandlers<string> = {
      self: () => own,
      admit: () => this.reason,
      onRefused: (_peer, reason) => this.refusals.push(reason),
      onLink: (peer, state, told) => this.#onLink(peer, state, told),
      onFrame: (from, frame) => this.#onFrame(from, frame),
    }
    this.transport.start(handlers)
  }

  #onLink(peer: string, state: 'up' | 'down', told: LinkInfo): void {
    this.links.push(state)
    if (this.#isClosed && state === 'up') this.breaches.push('up after the close')
    if (state === 'up') {
      if (this.peer !== undefined) this.breaches.push('up while it was up')
      if (!this.transport.isUp(peer)) this.breaches.push('told to be up, and is not')
      // Whose node it is, a dialler finds out; what the other side tells is the rest.
      const { node: _, ...rest } = told
      this.infos.push(rest)
      this.peer = peer
    } else {
      if (this.peer === undefined) this.breaches.push('down while it was down')
      if (this.transport.isUp(peer)) this.breaches.push('told to be down, and is not')
      this.peer = undefined
    }
  }

  #onFrame(from: string, frame: string): void {
    if (from !== this.peer) this.breaches.push('a frame without a link')
    if (this.#isClosed) this.breaches.push('a frame after the close')
    this.frames.push(frame)
  }

  send(frame: string): boolean {
    return this.peer !== undefined && this.transport.send(this.peer, frame)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.transport.close()
  }
}

export function transportContract(name: string, makePair: () => Promise<TransportPair>): void {
  interface Opened extends TransportPair {
    start(side: 'dialer' | 'listener', settings?: Settings): End
  }

  /** A pair of places; after the test the suite closes what runs there, and checks its conduct. */
  async function openPair(): Promise<Opened> {
    const pair = await makePair()
    const ends: End[] = []
    onTestFinished(async () => {
      for (const end of ends) await end.close()
      await pair.remove()
      expect(ends.flatMap(({ breaches }) => breaches)).toEqual([])
    })
    return {
      ...pair,
      start: (side, settings) => {
        const end = new End(pair[side], settings)
        ends.push(end)
        return end
      },
    }
  }

  async function openLinked(): Promise<Opened & { readonly a: End; readonly b: End }> {
    const pair = await openPair()
    const a = pair.start('dialer')
    const b = pair.start('listener')
    await pair.until(() => a.peer !== undefined && b.peer !== undefined)
    return { ...pair, a, b }
  }

  describe(name, () => {
    test('a link comes up by itself, and each side is told once, with what the other tells', async () => {
      const { a, b, idle } = await openLinked()
      await idle()
      expect([a.links, b.links]).toEqual([['up'], ['up']])
      expect(a.infos).toEqual([b.tellsInfo ? info : {}])
      expect(b.infos).toEqual([a.tellsInfo ? info : {}])
    })

    test.each([
      ['dialer', 'listener'],
      ['listener', 'dialer'],
    ] as const)('a link comes up whichever side is there first: the %s', async (first, second) => {
      const { start, until, idle } = await openPair()
      const early = start(first)
      await idle()
      expect(early.links).toEqual([])
      const late = start(second)
      await until(() => early.peer !== undefined && late.peer !== undefined)
      expect(early.send('hello')).toBe(true)
      await until(() => late.frames.length > 0)
    })

    test('frames of all sizes arrive whole, once, and in their order, both ways at once', async () => {
      const { a, b, until } = await openLinked()
      const frames = Array.from({ length: 300 }, (_, i) => `${i} ${'x'.repeat((i * 7919) % 9000)}`)
      frames.push('', `large ${'y'.repeat(1024 * 1024)}`, 'last')
      for (const frame of frames) {
        expect(a.send(frame)).toBe(true)
        expect(b.send(`back ${frame}`)).toBe(true)
      }
      await until(() => a.frames.length >= frames.length && b.frames.length >= frames.length)
      expect(b.frames).toEqual(frames)
      expect(a.frames).toEqual(frames.map((frame) => `back ${frame}`))
    })

    test('what is sent to a stranger, or before there is a link, is refused', async () => {
      const { start, a } = await openPair().then((pair) => ({ ...pair, a: pair.start('dialer') }))
      expect(a.transport.send('stranger', 'x')).toBe(false)
      expect(a.transport.isUp('stranger')).toBe(false)
      const b = start('listener')
      expect(b.transport.send('stranger', 'x')).toBe(false)
      expect(b.frames).toEqual([])
    })

    test.each(['dialer', 'listener'] as const)(
      'when the %s goes, the other side is told once, and its sends are refused',
      async (gone) => {
        const { a, b, until, idle } = await openLinked()
        const [leaver, stayer] = gone === 'dialer' ? [a, b] : [b, a]
        const peer = stayer.peer ?? ''
        await leaver.close()
        await until(() => stayer.peer === undefined)
        expect(stayer.transport.isUp(peer)).toBe(false)
        expect(stayer.transport.send(peer, 'x')).toBe(false)
        await idle()
        expect(stayer.links).toEqual(['up', 'down'])
      },
    )

    test.each(['dialer', 'listener'] as const)(
      'when the %s comes back, the link does too, with what it tells then',
      async (gone) => {
        const { a, b, until, start } = await openLinked()
        const [leaver, stayer] = gone === 'dialer' ? [a, b] : [b, a]
        for (const round of [1, 2]) {
          if (round === 1) await leaver.close()
          await until(() => stayer.peer === undefined)
          const own = { ...info, incarnation: 3 + round }
          const again = start(gone, { own })
          await until(() => stayer.peer !== undefined && again.peer !== undefined)
          expect(stayer.infos.at(-1)).toEqual(again.tellsInfo ? own : {})
          expect(again.send(`again ${round}`)).toBe(true)
          expect(stayer.send('welcome back')).toBe(true)
          await until(() => again.frames.length > 0 && stayer.frames.length === round)
          expect(stayer.frames.at(-1)).toBe(`again ${round}`)
          await again.close()
        }
      },
    )

    test.each([
      ['dialer', 'listener'],
      ['listener', 'dialer'],
    ] as const)(
      'the %s is told why the %s refuses it, and no side has a link',
      async (told, by) => {
        const { start, until, idle } = await openPair()
        const refused = start(told)
        const refuser = start(by, { reason: 'stale-disk: you have lost something' })
        await until(() => refused.refusals.length > 0)
        await idle()
        expect(refused.refusals[0]).toBe('stale-disk: you have lost something')
        // A client hears of its own refusals as well: they are why it has no node.
        for (const heard of refuser.refusals) expect(heard).toBe(refuser.reason)
        expect([refused.links, refuser.links]).toEqual([[], []])
      },
    )

    test('who was refused tries again, and has its link once it is admitted', async () => {
      const { start, until } = await openPair()
      const a = start('dialer')
      const b = start('listener', { reason: 'not yet' })
      await until(() => a.refusals.length > 0)
      b.reason = undefined
      await until(() => a.peer !== undefined && b.peer !== undefined)
      expect(a.send('at last')).toBe(true)
      await until(() => b.frames.length > 0)
    })

    test('a full queue refuses, what it took arrives, and then it takes again', async () => {
      const { a, b, until } = await openLinked()
      const filler = 'z'.repeat(64 * 1024)
      let taken = 0
      while (taken < 10_000 && a.send(`${taken} ${filler}`)) taken += 1
      expect(taken).toBeGreaterThan(0)
      expect(taken).toBeLessThan(10_000)
      await until(() => b.frames.length >= taken)
      expect(b.frames.map((frame) => Number.parseInt(frame, 10))).toEqual(
        Array.from({ length: taken }, (_, i) => i),
      )
      expect(a.send('room again')).toBe(true)
      await until(() => b.frames.at(-1) === 'room again')
    })

    test('a closed transport sends nothing, has no link, and may be closed once more', async () => {
      const { a, b, until, idle } = await openLinked()
      const peer = a.peer ?? ''
      await a.close()
      await a.close()
      expect(a.transport.isUp(peer)).toBe(false)
      expect(a.transport.send(peer, 'too late')).toBe(false)
      await until(() => b.peer === undefined)
      await idle()
      expect(b.frames).toEqual([])
      expect(b.links).toEqual(['up', 'down'])
    })
  })
}

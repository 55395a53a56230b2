// Does in Temporal's web interface what an operator does there, by clicks and keys in a
// browser. Reads a list of orders from standard input and prints, for each, the text
// of what its order asks to see.
//
//	node ui.mjs PATH-OF-CHROMIUM ADDRESS-OF-THE-UI NAMESPACE
//
// An order is {workflow, act, name}: act is show (its details), cancel, terminate, reset
// (to the first event that the interface offers) or signal (of that name).
import puppeteer from 'puppeteer-core'
import {text} from 'node:stream/consumers'

const [chromium, address, namespace] = process.argv.slice(2)
const orders = JSON.parse(await text(process.stdin))
const patience = 60_000
const tested = id => `[data-testid="${id}"]`

const browser = await puppeteer.launch({
	executablePath: chromium, headless: true, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
})
try {
	const page = await browser.newPage()
	page.setDefaultTimeout(patience)
	await page.setViewport({width: 1600, height: 1200})

	// reach finds what a click would hit. Of what the page has twice, for wide windows and
	// for narrow ones, one is visible; what still moves, or is covered, is waited for.
	const reach = async (selector, words) => {
		const seen = await page.waitForFunction((s, w) => {
			const e = [...document.querySelectorAll(s)].find(e => e.offsetParent !== null && (w === null || e.innerText.trim() === w))
			if (!e) return null
			const box = e.getBoundingClientRect(), at = [box.x, box.y, box.width, box.height].join()
			const still = window.lastReach?.e === e && window.lastReach.at === at
			window.lastReach = {e, at}
			return still && e.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)) ? e : null
		}, {polling: 100}, selector, words ?? null)
		return seen.asElement()
	}
	const press = async (selector, words) => (await reach(selector, words)).click()
	const type = async (selector, words) => (await reach(selector)).type(words)

	// dialog fills in what opens, confirms it, and waits until it is closed.
	const dialog = async (name, fill) => {
		const open = `dialog[open]#${name}-confirmation-modal`
		await page.waitForSelector(open)
		await fill?.(open)
		await press(`${open} ${tested('confirm-modal-button')}:not([disabled])`)
		await page.waitForFunction(s => !document.querySelector(s), {}, open)
	}
	const more = async item => {
		await press('button', 'More Actions')
		await press(tested(item))
	}

	const acts = {
		// Summary and details are texts in frames of their own.
		show: async () => {
			await press('a[href*="/user-metadata"]')
			await page.waitForFunction(() => location.pathname.endsWith('/user-metadata'))
			for (let last = '', until = Date.now() + patience; ; await new Promise(r => setTimeout(r, 300))) {
				const frames = page.frames().filter(f => f !== page.mainFrame())
				const texts = await Promise.all(frames.map(f => f.evaluate(() => document.body.innerText).catch(() => '')))
				const all = texts.join('\n').trim()
				if (all !== '' && all === last || Date.now() > until) return all
				last = all
			}
		},
		cancel: async () => {
			await press('button', 'Request Cancellation')
			await dialog('cancel')
		},
		terminate: async () => {
			await more('terminate-button')
			await dialog('terminate', open => type(`${open} ${tested('workflow-termination-reason')}`, 'by hand'))
		},
		reset: async () => {
			await more('reset-button')
			await dialog('reset', async open => {
				await press(`${open} ${tested('workflow-reset-event-id-select-button')}`)
				await press(`${open} [role=option]`)
				await type(`${open} ${tested('reset-reason')}`, 'by hand')
			})
		},
		signal: async o => {
			await more('signal-button')
			await dialog('signal', async open => {
				await press(`${open} ${tested('signal-select-button')}`)
				await press(`${open} [role=option]`, o.name)
			})
		},
	}
	for (const o of orders) {
		await page.goto(`${address}/namespaces/${namespace}/workflows/${o.workflow}`, {waitUntil: 'networkidle2', timeout: patience})
		await reach(tested('workflow-id-heading'))
		console.log(JSON.stringify(await acts[o.act](o) ?? ''))
	}
} finally {
	await browser.close()
}

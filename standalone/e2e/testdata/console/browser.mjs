// A browser as a person uses the console, and what is looked at on each page.
//
// The test that starts this program talks with it in lines of JSON: {"ask": NAME, "with": …}
// on standard output is answered by one line on standard input.
import axe from 'axe-core'
import {mkdir} from 'node:fs/promises'
import {createInterface} from 'node:readline'
import path from 'node:path'
import puppeteer from 'puppeteer-core'

export const patience = 60_000
const lines = createInterface({input: process.stdin})[Symbol.asyncIterator]()

/** ask has the test do something outside the browser, and returns its answer. */
export async function ask(name, arg = null) {
	process.stdout.write(JSON.stringify({ask: name, with: arg}) + '\n')
	const {value, done} = await lines.next()
	if (done) throw new Error(`no answer to ${name}`)
	return JSON.parse(value)
}

export function must(holds, what) {
	if (!holds) throw new Error(what)
}

/** until waits for something that is not on a page. */
export async function until(what, probe) {
	for (const end = Date.now() + patience; ; await new Promise(r => setTimeout(r, 200))) {
		const value = await probe()
		if (value) return value
		if (Date.now() > end) throw new Error(`not within ${patience} ms: ${what}`)
	}
}

export async function open(chromium) {
	return puppeteer.launch({
		executablePath: chromium, headless: true,
		args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--autoplay-policy=no-user-gesture-required', '--mute-audio',
			'--host-resolver-rules=MAP mediagate.test 127.0.0.1'],
	})
}

/** Visitor is one person's browser: cookies of their own, and a page. */
export class Visitor {
	messages = [] // of the browser's console, and scripts that failed
	expected = [] // what may stand among them

	static async come(browser, base, pictures = '') {
		const v = new Visitor()
		v.base = base
		v.pictures = pictures
		v.context = await browser.createBrowserContext()
		await v.context.overridePermissions(base, ['clipboard-read', 'clipboard-write', 'clipboard-sanitized-write'])
		v.page = await v.context.newPage()
		v.page.setDefaultTimeout(patience)
		await v.page.setViewport({width: 1440, height: 900})
		v.page.on('console', m => v.note(`${m.type()}: ${m.text()} ${m.location().url ?? ''}`))
		v.page.on('pageerror', e => v.note(`error: ${e.message}`))
		return v
	}

	note(message) {
		if (!this.expected.some(e => e.test(message))) this.messages.push(`${this.page.url()} ${message}`)
	}

	/** go opens an address below /console. */
	async go(to) {
		await this.page.goto(`${this.base}/console${to}`, {waitUntil: 'load'})
	}

	/** locate names an element by its role and accessible name. */
	locate(role, name, within = '') {
		const quoted = name.replaceAll('"', '\\"')
		return this.page.locator(`${within} ::-p-aria([name="${quoted}"][role="${role}"])`).setTimeout(patience)
	}
	/** at finds an element, and waits for it. */
	async at(role, name, within) {
		return this.locate(role, name, within).waitHandle()
	}
	/** press clicks on an element, and finds it anew where the page has replaced it meanwhile. */
	async press(role, name, within) {
		await this.locate(role, name, within).click()
	}
	/** click is press by a selector. */
	async click(selector) {
		await this.page.locator(selector).setTimeout(patience).click()
	}
	async fill(role, name, text, within) {
		const e = await this.at(role, name, within)
		await e.evaluate(e => { e.focus(); e.select?.() })
		await this.page.keyboard.press('Backspace')
		await e.type(text)
	}
	/** choose takes an option of a select by its value. */
	async choose(name, value, within) {
		await (await this.at('combobox', name, within)).select(value)
	}
	/** holds waits until a function of the page is true, and returns what it says. It looks
	 * anew each time: puppeteer's waitForFunction loses its page now and then at a reload. */
	async holds(probe, ...args) {
		return until(`${this.page.url()}: ${probe} ${args}`, () => this.page.evaluate(probe, ...args).catch(() => false))
	}
	/** sees waits until the page shows a text. */
	async sees(text) {
		await this.holds(t => document.body.innerText.includes(t), text)
	}
	async seesNot(text) {
		must(!(await this.page.evaluate(() => document.body.innerText)).includes(text), `${this.page.url()} shows ${text}`)
	}

	/** settles waits until the page has what it loads: nothing came between two looks. */
	async settles() {
		await this.page.evaluate(() => { delete globalThis.lastLook })
		await this.page.waitForFunction(() => {
			const look = `${performance.getEntriesByType('resource').length} ${document.body.innerText.length}`
			const same = globalThis.lastLook === look && document.querySelector('h1') && !document.querySelector('.loading')
			globalThis.lastLook = look
			return same
		}, {polling: 500})
	}

	async signIn(key) {
		await this.go('/sign-in')
		await this.fill('textbox', 'API key', key)
		await this.press('button', 'Sign in')
		await this.holds(() => !location.pathname.endsWith('/sign-in'))
	}

	/** abide holds the page to axe-core's rules as it is. */
	async abide(where) {
		await this.page.evaluate(axe.source)
		const found = await this.page.evaluate(async () => (await globalThis.axe.run(document, {resultTypes: ['violations']})).violations)
		const told = found.flatMap(v => v.nodes.map(n => `${v.id}: ${n.target.join(' ')}: ${n.failureSummary}`))
		must(told.length === 0, `${where}:\n${told.join('\n')}`)
	}

	/** inspect holds the page to axe-core's rules, light and wide, dark and narrow, or takes
	 * its picture in all four. Nothing may be wider than the window. */
	async inspect(name) {
		for (const theme of ['light', 'dark']) {
			await this.page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: theme}, {name: 'prefers-reduced-motion', value: 'reduce'}])
			for (const width of this.pictures ? [1440, 390] : theme === 'light' ? [1440] : [390]) {
				await this.page.setViewport({width, height: width === 390 ? 844 : 900})
				await this.page.evaluate(() => new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r))))
				await this.abide(`${name}, ${theme}, ${width} pixels wide`)
				const wide = await this.page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
				must(wide <= 0, `${name}, ${width} pixels wide: the page is ${wide} pixels wider than its window`)
				if (this.pictures) await this.picture(`${name}-${theme}-${width}`, width)
			}
		}
		await this.page.setViewport({width: 1440, height: 900})
		await this.page.emulateMediaFeatures([])
	}

	/** picture takes a screenshot, on a phone of the whole page. The window first becomes as high as the page: Chromium leaves out
	 * canvases and images that it has not painted yet when it captures what is outside of the window. */
	async picture(name, width) {
		const height = await this.page.evaluate(() => Math.max(innerHeight, document.documentElement.scrollHeight))
		if (width === 390) await this.page.setViewport({width, height})
		await this.page.evaluate(async () => {
			await Promise.all([...document.images].map(i => i.decode().catch(() => {})))
			await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))
		})
		await mkdir(this.pictures, {recursive: true})
		await this.page.screenshot({path: path.join(this.pictures, `${name}.png`), fullPage: width === 390})
	}

	/** drawn checks on a phone, light and dark, that a canvas has something in it, after the window and the theme have changed. */
	async drawn(selector) {
		for (const theme of ['light', 'dark']) {
			await this.page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: theme}])
			for (const width of [1440, 390]) {
				await this.page.setViewport({width, height: 844})
				await this.holds(selector => {
					const canvas = document.querySelector(selector)
					const {width, height} = canvas
					const pen = Object.assign(document.createElement('canvas'), {width, height}).getContext('2d')
					pen.drawImage(canvas, 0, 0)
					return canvas.clientWidth > 0 && pen.getImageData(0, 0, width, height).data.some(value => value > 0)
				}, selector)
			}
		}
		await this.page.setViewport({width: 1440, height: 900})
		await this.page.emulateMediaFeatures([])
	}

	/** keys presses keys, one after the other. */
	async keys(...names) {
		for (const name of names) await this.page.keyboard.press(name)
	}

	/** tabTo presses Tab until an element has the focus. */
	async tabTo(element) {
		for (let i = 0; i < 300; i++) {
			await this.keys('Tab')
			if (await element.evaluate(e => e === document.activeElement)) return
		}
		throw new Error(`${this.page.url()}: Tab does not lead to ${await element.evaluate(e => e.outerHTML.slice(0, 200))}`)
	}

	/** tour goes through the page by Tab: each control gets the focus, and shows that it has it. */
	async tour(where) {
		const skip = await this.page.waitForSelector('.skip')
		await skip.focus()
		await this.page.evaluate(() => { globalThis.reached = new Set() })
		for (let i = 0, ended = false; !ended; i++) {
			must(i < 1000, `${where}: Tab comes to no end`)
			const hidden = await this.page.evaluate(() => {
				const e = document.activeElement
				reached.add(e)
				// The label of a hidden input follows it, and has its outline.
				const shows = [e, e.nextElementSibling].some(s => s && getComputedStyle(s).outlineStyle !== 'none')
				return shows ? '' : e.outerHTML.slice(0, 200)
			})
			must(hidden === '', `${where}: the focus is not seen at ${hidden}`)
			await this.keys('Tab')
			ended = await this.page.evaluate(() => document.activeElement === document.body || document.activeElement.matches('.skip'))
		}
		const missed = await this.page.evaluate(() => {
			const names = new Set([...reached].map(e => e.type === 'radio' && e.name))
			return [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
				.filter(e => !e.disabled && e.checkVisibility({visibilityProperty: true}) && !reached.has(e) && !(e.type === 'radio' && names.has(e.name)))
				.map(e => e.outerHTML.slice(0, 200))
		})
		must(missed.length === 0, `${where}: Tab does not lead to\n${missed.join('\n')}`)
	}

	/** rests lets a minute of the browser's own time go by on a page, in which it must ask for nothing. */
	async rests(to) {
		const tab = await this.context.newPage()
		await tab.goto(`${this.base}/console${to}`, {waitUntil: 'networkidle0'})
		await tab.waitForFunction(() => !document.querySelector('.loading'))
		const asked = []
		tab.on('request', request => asked.push(request.url()))
		const clock = await tab.createCDPSession()
		const over = new Promise(resolve => clock.once('Emulation.virtualTimeBudgetExpired', resolve))
		await clock.send('Emulation.setVirtualTimePolicy', {policy: 'advance', budget: 60_000})
		await over
		must(asked.length === 0, `${to} asks within a minute for ${asked}`)
		await tab.close()
	}

	/** leave ends the visit: the browser's console must have stayed silent. */
	async leave() {
		await this.context.close()
		must(this.messages.length === 0, `the browser's console says:\n${this.messages.join('\n')}`)
	}
}

"""The looks of tests/long/site.sh at the site, in Chromium.

    site.py SITE PROFILE ENDED

The browser gets the empty directory PROFILE. The file ENDED exists when all
looks were taken."""
import glob
import json
import os
import sys

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

SITE, PROFILE, ENDED = sys.argv[1:]
PAGES = sorted(os.path.relpath(name, SITE) for name in
               glob.glob(f'{SITE}/**/*.html', recursive=True))
NARROW = 400
SECONDS = 60   # after which a page that does not come is a failure


def report(name, is_right, why=''):
    print(f'ok {name}' if is_right else f'not ok {name}: {why}', flush=True)


def same(name, wanted, got):
    report(name, wanted == got, f'wanted {wanted!r}, got {got!r}')


def start():
    options = webdriver.ChromeOptions()
    options.binary_location = '/usr/bin/chromium'
    # Root has no sandbox. Nothing but the site is loaded: no name has an
    # address, and the browser's own services are off.
    for option in ('headless', 'no-sandbox', 'disable-gpu', 'disable-quic',
                   'disable-dev-shm-usage', 'no-first-run',
                   'disable-background-networking', 'disable-component-update',
                   'disable-sync', 'host-resolver-rules=MAP * ~NOTFOUND',
                   'window-size=1280,900', f'user-data-dir={PROFILE}'):
        options.add_argument(f'--{option}')
    options.set_capability('goog:loggingPrefs',
                           {'browser': 'ALL', 'performance': 'ALL'})
    return webdriver.Chrome(service=Service('/usr/bin/chromedriver'),
                            options=options)


def visit(path):
    browser.get(f'file://{SITE}/{path}')


def find(selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def top(selector):
    """The distance of an element from the top of the screen."""
    return browser.execute_script(
        'return document.querySelector(arguments[0])'
        '.getBoundingClientRect().top', selector)


def address():
    """The shown page, as a path in the site."""
    return browser.current_url.removeprefix(f'file://{SITE}/')


def wait(name, is_there):
    """Waits for the effect of a click; without it, the test ends."""
    WebDriverWait(browser, SECONDS).until(lambda _: is_there(), name)


def results(question):
    visit(f'search.html?q={question}')
    wait('the count of results', lambda: 'sections have' in
         find('#found')[0].text)
    return [link.get_attribute('href').removeprefix(f'file://{SITE}/')
            for link in find('#results a')]


def look_at_first_page():
    visit('index.html')
    same('the title', 'refd', browser.title)
    report('the heading is visible', find('h1')[0].is_displayed())
    links = [link for link in find('nav a') if link.is_displayed()]
    same('the navigation begins as the README',
         ['Installation', 'Operations', 'Two nodes', 'Durability'],
         [link.text for link in links[:4]])
    same('the last manual page', 'refd-verify(8)', links[-1].text)
    links[3].click()
    wait('a page of the navigation', lambda: browser.title == 'Durability')
    same('the navigation opens a page', 'docs/durability.html', address())


def look_for_words():
    visit('docs/decisions/index.html')
    field = find('input[name=q]')[0]
    field.send_keys('Lost footers')
    field.submit()
    wait('results', lambda: find('#results a'))
    same('the question is in the field', 'Lost footers',
         find('input[name=q]')[0].get_attribute('value'))
    find('#results a')[0].click()
    wait('the first result', lambda: browser.title == 'Reftables')
    same('the first result is the heading', 'docs/reftables.html#lost-footers',
         address())
    wait('the heading on the screen', lambda: -1 < top('#lost-footers') < 900)
    found = [path.partition('#')[0] for path in results('fsync')]
    for page in ('docs/durability.html', 'man/refd.conf.5.html'):
        report(f'fsync is found in {page}', page in found, found)
    same('a manual page by its name', 'man/refd-deliver.8.html#',
         results('refd-deliver(8)')[0])
    same('no page has the words', [], results('fsync%20nowhere-at-all'))
    same('a question is no HTML', [], results('%3Cimg%20src=x%3E%20nowhere'))
    same('... also in the line above', 0, len(find('main img')))


def look_at_manual():
    visit('man/refd.1.html')
    wanted = {'refd-top(1)': '/man/refd-stats.1.html',
              'refd.conf(5)': '/man/refd.conf.5.html',
              'refd-protocol(7)': '/proto/PROTOCOL.html'}
    for name, path in wanted.items():
        links = [link.get_attribute('href') for link in find('main a')
                 if link.text == name]
        report(f'refd(1) leads to {name}',
               links and all(link.endswith(path) for link in links), links)


def look_at_drawing():
    visit('docs/architecture.html')
    image = find('img[src="push.svg"]')[0]
    report('the drawing is visible', image.is_displayed())
    browser.execute_script('arguments[0].scrollIntoView()', image)
    report('the drawing is wide enough to be read', image.size['width'] > 600,
           image.size)
    colours = []
    for scheme in ('light', 'dark'):
        browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': [
            {'name': 'prefers-color-scheme', 'value': scheme}]})
        for page, element in (('docs/push.svg', 'text'),
                              ('index.html', 'body')):
            visit(page)
            colours.append(browser.execute_script(
                'const style = getComputedStyle(document.querySelector('
                'arguments[0])); return style.fill + style.color', element))
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': []})
    report('the drawing has colours for the dark', colours[0] != colours[2],
           colours)
    report('the pages have colours for the dark', colours[1] != colours[3],
           colours)


def look_at_all():
    """A narrow screen is last, because it stays."""
    images, blank = 0, []
    for page in PAGES:
        visit(page)
        sizes = browser.execute_script(
            'return Array.from(document.images, i => [i.src, i.naturalWidth])')
        images += len(sizes)
        blank += [f'{page}: {name}' for name, width in sizes if not width]
    report('images are there', images >= 7, images)
    same('no image is blank', [], blank)
    browser.execute_cdp_cmd('Emulation.setDeviceMetricsOverride', {
        'width': NARROW, 'height': 800, 'deviceScaleFactor': 1,
        'mobile': False})
    wide = []
    for page in PAGES:
        visit(page)
        width, scroll = browser.execute_script(
            'const e = document.documentElement;'
            'return [innerWidth, e.scrollWidth - e.clientWidth]')
        if width != NARROW or scroll > 0:
            wide.append(f'{page}: {width}, {scroll} too wide')
    same('no page scrolls to the side on a narrow screen', [], wide)
    visit('index.html')
    find('a.narrow')[0].click()
    wait('the navigation on the screen', lambda: -1 < top('nav a') < 800)
    report('a link leads to the navigation', True)


def look_at_logs():
    same('no script and no file fails', [], [
        entry['message'] for entry in browser.get_log('browser')
        if entry['level'] == 'SEVERE'])
    events = [json.loads(entry['message'])['message']
              for entry in browser.get_log('performance')]
    requests = [event['params']['request']['url'] for event in events
                if event['method'] == 'Network.requestWillBeSent']
    # The empty page of the browser, before the first page of the site.
    requests = [url for url in requests if not url.startswith('chrome://')]
    report('requests were seen', len(requests) > len(PAGES), len(requests))
    same('every request is for a file of the site', [], [
        url for url in requests
        if not url.startswith((f'file://{SITE}/', 'data:'))])


browser = start()
try:
    look_at_first_page()
    look_for_words()
    look_at_manual()
    look_at_drawing()
    look_at_all()
    look_at_logs()
    with open(ENDED, 'w', encoding='ascii'):
        pass
finally:
    browser.quit()

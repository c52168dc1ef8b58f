//! dev only
use agon_analysis::report::{Report, Settings};
use std::num::NonZeroUsize;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dataset = agon_analysis::Dataset::open(std::path::Path::new(&args[1])).unwrap();
    for name in &args[3..] {
        let run = dataset.find(name).unwrap();
        let s = Settings {
            replicas: NonZeroUsize::new(1000).unwrap(),
            seed: 1,
            threads: NonZeroUsize::new(2).unwrap(),
        };
        let t = std::time::Instant::now();
        let report = Report::read(&dataset, &run, &s, &|_| ()).unwrap();
        let page = report.page();
        println!("{name}: {} in {:?}, {} bytes", report.answer, t.elapsed(), page.len());
        std::fs::write(format!("{}/{}.html", args[2], run.id), page).unwrap();
    }
}
